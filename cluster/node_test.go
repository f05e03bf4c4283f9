package cluster_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

func TestNodeIDsAreUnique(t *testing.T) {
	t.Parallel()
	a, b := cluster.NewNodeID(), cluster.NewNodeID()
	if a == b || a == uuid.Nil {
		t.Errorf("new ids: %s and %s", a, b)
	}
	parsed, err := cluster.ParseNodeID(a.String())
	if err != nil || parsed != a {
		t.Errorf("parsed %s, %v", parsed, err)
	}
	if id, err := cluster.ParseNodeID("api-1"); id != uuid.Nil || err == nil || !strings.Contains(err.Error(), `"api-1"`) {
		t.Errorf("a name was parsed: %s, %v", id, err)
	}
}

func TestStatusesParseTheirText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cluster.NodeStatus{
		"joining": cluster.Joining, "active": cluster.Active, "draining": cluster.Draining, "dead": cluster.Dead,
		"starting": cluster.Dead, "Active": cluster.Dead, "": cluster.Dead,
	} {
		if got := tenure.NodeStatus(text).OrDead(); got != want {
			t.Errorf("%q reads as %s, want %s", text, got, want)
		}
	}
	for _, status := range []cluster.NodeStatus{cluster.Joining, cluster.Active, cluster.Draining, cluster.Dead} {
		if status.OrDead() != status {
			t.Errorf("%s does not come back from its text", status)
		}
		if got, want := status.AcceptsWork(), status == cluster.Active; got != want {
			t.Errorf("%s accepts work: %t", status, got)
		}
	}
}

func TestNodeInfoFindsRolesAndCapabilities(t *testing.T) {
	t.Parallel()
	all := cluster.NodeRoles()
	if want := []cluster.NodeRole{"gateway", "function", "worker", "scheduler"}; !slices.Equal(all, want) {
		t.Errorf("the roles are %v", all)
	}
	all[0] = "changed"
	if cluster.NodeRoles()[0] != cluster.Gateway {
		t.Error("the list of roles can be changed from outside")
	}
	node := cluster.NodeInfo{Roles: []cluster.NodeRole{cluster.Worker, "encoder"}, Capabilities: []string{"gpu"}}
	if !node.HasRole(cluster.Worker) || !node.HasRole("encoder") || node.HasRole(cluster.Gateway) {
		t.Error("HasRole")
	}
	if !node.HasCapability("gpu") || node.HasCapability("worker") || (cluster.NodeInfo{}).HasCapability("") {
		t.Error("HasCapability")
	}
}

func TestLoadIsTheMeanOfProcessorsAndMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cpu, memory, want float64 }{
		{0, 0, 0}, {50, 100, 0.75}, {100, 100, 1}, {400, 100, 1}, {-5, 0, 0},
	} {
		if got := (cluster.NodeInfo{CPUUsage: c.cpu, MemoryUsage: c.memory}).Load(); got != c.want {
			t.Errorf("with %v %% and %v %% the load is %v, want %v", c.cpu, c.memory, got, c.want)
		}
	}
}

func TestLeaderRoleHasItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"scheduler", "metrics-aggregator", "log-compactor"} {
		if role, ok := cluster.LeaderRole(name); !ok || role != tenure.NamedRole(name) {
			t.Errorf("%s: %v, %t", name, role, ok)
		}
	}
	if _, ok := cluster.LeaderRole("gateway"); ok {
		t.Error("gateway is no role that has a leader")
	}
	want := []tenure.Role{cluster.SchedulerRole, cluster.MetricsAggregatorRole, cluster.LogCompactorRole}
	if !slices.Equal(cluster.LeaderRoles(), want) {
		t.Errorf("the roles are %v", cluster.LeaderRoles())
	}
}

func TestLocalNodeDescribesProcess(t *testing.T) {
	t.Parallel()
	node := cluster.LocalNode(cluster.Config{})
	if node.Hostname == "" || node.Status != cluster.Joining || node.ID != uuid.Nil || !slices.Equal(node.Roles, cluster.NodeRoles()) {
		t.Errorf("%+v", node)
	}
	if ip := net.ParseIP(node.Address); ip == nil || ip.IsUnspecified() || ip.IsMulticast() {
		t.Errorf("the address is %q", node.Address)
	}
	config := cluster.Config{
		Address: "api.example.com", HTTPPort: 80, GRPCPort: 81, Roles: []cluster.NodeRole{"r"}, Capabilities: []string{"c"},
		Labels: map[string]string{"zone": "a"}, Version: "v9",
	}
	node = cluster.LocalNode(config)
	if node.Address != "api.example.com" || node.HTTPPort != 80 || node.GRPCPort != 81 || !node.HasRole("r") ||
		node.HasRole(cluster.Worker) || !node.HasCapability("c") || node.Labels["zone"] != "a" || node.Version != "v9" {
		t.Errorf("%+v", node)
	}
}
