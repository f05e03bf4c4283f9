package service

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/version"
)

// MembershipFlags are the flags of a command whose node is a member of a cluster.
type MembershipFlags struct {
	flags *pflag.FlagSet

	Name        string
	heartbeat   flagvalue.Duration
	threshold   flagvalue.Duration
	markDead    bool
	minNodes    flagvalue.Number
	startup     flagvalue.Duration
	uniqueNames bool

	leaving leavingFlags

	labels       flagvalue.Labels
	capabilities []string
	Roles        []string
	address      string
	httpPort     flagvalue.Number
	grpcPort     flagvalue.Number
}

// membershipNames are the flags that need a registry of nodes.
var membershipNames = []string{
	"cluster-name", "heartbeat-interval", "dead-threshold", "mark-dead-nodes", "min-nodes", "startup-timeout",
	"drain-timeout", "drain-poll-interval", "force-after",
	"capability", "node-role", "require-node-role",
}

const maxNodes = 10_000

// Register adds the flags.
func (f *MembershipFlags) Register(flags *pflag.FlagSet) {
	f.flags = flags
	f.minNodes.Most, f.httpPort.Most, f.grpcPort.Most = maxNodes, 65535, 65535
	f.startup.AllowZero = true
	flags.StringVar(&f.Name, "cluster-name", DefaultClusterName, "the cluster's display name")
	flags.Var(&f.heartbeat, "heartbeat-interval", "longest time between heartbeats, and time between samples of the load; default 5s")
	flags.Var(&f.threshold, "dead-threshold", "mark other nodes dead after this long without a heartbeat, if nothing detected it earlier; default 15s")
	flags.BoolVar(&f.markDead, "mark-dead-nodes", true, "mark silent nodes as dead; false leaves it to other nodes")
	flags.Var(&f.minNodes, "min-nodes", "number of nodes, including this one, that must have joined before it campaigns")
	flags.Var(&f.startup, "startup-timeout", "how long to wait for --min-nodes before reporting it as a failure; default no limit")
	flags.BoolVar(&f.uniqueNames, "unique-names", false, "do not start while another live node has the same name")
	f.leaving.register(flags)
	flags.Var(&f.labels, "label", "a label of this node, NAME=VALUE; repeatable")
	flags.StringArrayVar(&f.capabilities, "capability", nil, "a kind of work that this node can do; repeatable")
	flags.StringArrayVar(&f.Roles, "node-role", nil, "a node role; repeatable; default gateway, function, worker and scheduler")
	flags.StringVar(&f.address, "address", "", "`address` where other nodes reach this node; default this machine's address")
	flags.Var(&f.httpPort, "http-port", "port where this node serves HTTP, published in the registry; default the port of --listen, if given")
	flags.Var(&f.grpcPort, "grpc-port", "port where this node serves gRPC, published in the registry; default none")
}

// Refuse rejects the flags, with the origin of their values, on a database
// without a registry of nodes.
func (f *MembershipFlags) Refuse(database *connect.DatabaseFlags) error {
	for _, name := range membershipNames {
		if f.flags.Changed(name) {
			return database.RequireRegistry(config.Origin(f.flags, name))
		}
	}
	return nil
}

// RefuseWithAgent rejects the flags, with the origin of their values, for a node
// of an agent.
func (f *MembershipFlags) RefuseWithAgent() error {
	for _, name := range slices.Concat(membershipNames, []string{"unique-names"}) {
		if f.flags.Changed(name) {
			return console.Usage("%s needs the registry of nodes, in which the nodes of an agent are not: connect to the database instead of --agent", config.Origin(f.flags, name))
		}
	}
	return nil
}

// config returns the configuration of the member.
func (f *MembershipFlags) config() (cluster.Config, error) {
	for _, given := range []struct {
		name   string
		values []string
	}{{"capability", f.capabilities}, {"node-role", f.Roles}, {"address", []string{f.address}}} {
		if f.flags.Changed(given.name) && slices.Contains(given.values, "") {
			return cluster.Config{}, console.Usage("--%s is empty", given.name)
		}
	}
	joined := cluster.Config{
		Name: f.Name, Address: f.address, HTTPPort: f.httpPort.Value, GRPCPort: f.grpcPort.Value,
		Capabilities: f.capabilities, Labels: f.labels.Values, Version: version.Read().Version,
		MinNodes: f.minNodes.Value, StartupTimeout: f.startup.Value, UniqueNames: f.uniqueNames,
		Heartbeat: cluster.HeartbeatConfig{
			Interval: f.heartbeat.Value, DeadThreshold: f.threshold.Value, SkipMarkingDead: !f.markDead,
		},
		Shutdown: f.leaving.config(),
	}
	for _, role := range f.Roles {
		joined.Roles = append(joined.Roles, cluster.NodeRole(role))
	}
	return joined, nil
}

// Labels returns the labels of this node.
func (f *MembershipFlags) Labels() map[string]string { return f.labels.Values }

// SetLabel sets a label of this node.
func (f *MembershipFlags) SetLabel(name, value string) {
	if f.labels.Values == nil {
		f.labels.Values = map[string]string{}
	}
	f.labels.Values[name] = value
}

// listening publishes the port of --listen unless --http-port names another.
func (f *MembershipFlags) listening(server *HTTPServer) {
	if server != nil && !f.flags.Changed("http-port") {
		f.httpPort.Value = server.port()
	}
}

// DefaultClusterName is the name of a cluster without a name.
const DefaultClusterName = "default"
