package cluster_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

func TestJoinRejectsInvalidConfigs(t *testing.T) {
	t.Parallel()
	store := newSite(t).store()
	for says, config := range map[string]cluster.Config{
		"the HTTP port is 65536":               {HTTPPort: 65536},
		"the HTTP port is -1":                  {HTTPPort: -1},
		"the gRPC port is 70000":               {GRPCPort: 70000},
		"the minimum of nodes is -1":           {MinNodes: -1},
		"the startup timeout is -1s":           {StartupTimeout: -time.Second},
		"the heartbeat interval is -1s":        {Heartbeat: cluster.HeartbeatConfig{Interval: -time.Second}},
		"the dead threshold is -1ns":           {Heartbeat: cluster.HeartbeatConfig{DeadThreshold: -1}},
		"the drain timeout is -1s":             {Shutdown: cluster.ShutdownConfig{DrainTimeout: -time.Second}},
		"a shutdown is forced is -1s":          {Shutdown: cluster.ShutdownConfig{ForceAfter: -time.Second}},
		"the drain timeout is 2562047h":        {Shutdown: cluster.ShutdownConfig{DrainTimeout: math.MaxInt64}}, // its end would be in the past
		"a node role is empty":                 {Roles: []cluster.NodeRole{"worker", ""}},
		"a capability of the node is empty":    {Capabilities: []string{""}},
		`value "a\nb" in the node description`: {Address: "a\nb"},
		"a label has no name":                  {Labels: map[string]string{"": "x"}},
	} {
		member, err := cluster.Join(within(t), store, tenure.Config{Name: "n"}, config)
		if err == nil {
			t.Errorf("%q was expected, but the node joined", says)
			_ = member.Close(within(t))
			continue
		}
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q was expected, but the error is: %v", says, err)
		}
	}
}

func TestHeartbeatsAreAsFrequentAsTheShorterIntervalSays(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	for _, c := range []struct {
		node    tenure.Config
		config  cluster.HeartbeatConfig
		refresh time.Duration
	}{
		{tenure.Config{}, cluster.HeartbeatConfig{}, 10 * time.Second / 3},
		{tenure.Config{Lease: 30 * time.Second}, cluster.HeartbeatConfig{}, 5 * time.Second},
		{tenure.Config{RefreshInterval: 2 * time.Second}, cluster.HeartbeatConfig{Interval: 4 * time.Second}, 2 * time.Second},
		{tenure.Config{}, cluster.HeartbeatConfig{Interval: time.Second}, time.Second},
	} {
		n := site.join("n", cluster.Config{Heartbeat: c.config}, func(to *tenure.Config) {
			to.Lease, to.RefreshInterval = c.node.Lease, c.node.RefreshInterval
		})
		if got := n.Node().Timing().RefreshInterval; got != c.refresh {
			t.Errorf("%+v, %+v: the refresh interval is %v, want %v", c.node, c.config, got, c.refresh)
		}
	}
}

func TestNamesCanBeUnique(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	first := site.join("api", cluster.Config{UniqueNames: true})
	if _, err := site.tryJoin("api", cluster.Config{UniqueNames: true}); !errors.Is(err, tenure.ErrNameTaken) {
		t.Errorf("the second node of the name: %v", err)
	}
	other := site.join("api", cluster.Config{})
	if first.ID() == other.ID() {
		t.Error("two nodes have one id")
	}
}
