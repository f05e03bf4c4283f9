package main

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/cmd/tenure/internal/config"
)

// membershipFlags are the flags of a command whose node is a member of a cluster.
type membershipFlags struct {
	flags *pflag.FlagSet

	name        string
	heartbeat   duration
	threshold   duration
	markDead    bool
	minNodes    number
	startup     duration
	uniqueNames bool

	leaving leavingFlags

	labels       labels
	capabilities []string
	roles        []string
	address      string
	httpPort     number
	grpcPort     number
}

// membershipNames are the flags that need a registry of nodes.
var membershipNames = []string{
	"cluster-name", "heartbeat-interval", "dead-threshold", "mark-dead-nodes", "min-nodes", "startup-timeout",
	"drain-timeout", "drain-poll-interval", "force-after",
	"label", "capability", "node-role", "address", "http-port", "grpc-port",
}

const mostNodes = 10_000

func (f *membershipFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	f.minNodes.most, f.httpPort.most, f.grpcPort.most = mostNodes, 65535, 65535
	f.startup.allowZero = true
	flags.StringVar(&f.name, "cluster-name", defaultClusterName, "the cluster's name, for people")
	flags.Var(&f.heartbeat, "heartbeat-interval", "most time between heartbeats, and time between samples of the load; default 5s")
	flags.Var(&f.threshold, "dead-threshold", "silence after which others mark this node dead if nothing told them before; default 15s")
	flags.BoolVar(&f.markDead, "mark-dead-nodes", true, "mark silent nodes as dead; false leaves it to the others")
	flags.Var(&f.minNodes, "min-nodes", "how many nodes must have come, this one among them, before it stands for roles")
	flags.Var(&f.startup, "startup-timeout", "how long to wait for --min-nodes before reporting it as a failure; default no limit")
	flags.BoolVar(&f.uniqueNames, "unique-names", false, "do not start while another living node has the same name")
	f.leaving.register(flags)
	flags.Var(&f.labels, "label", "a label of this node, NAME=VALUE; may be repeated")
	flags.StringArrayVar(&f.capabilities, "capability", nil, "a kind of work that this node can do; may be repeated")
	flags.StringArrayVar(&f.roles, "node-role", nil, "what this node is there for; may be repeated; default gateway, function, worker and scheduler")
	flags.StringVar(&f.address, "address", "", "where others reach this node; default this machine's address")
	flags.Var(&f.httpPort, "http-port", "where this node serves HTTP, for others to know; default none")
	flags.Var(&f.grpcPort, "grpc-port", "where this node serves gRPC, for others to know; default none")
}

func (f *membershipFlags) live() live { return f.leaving.live() }

// refuse refuses the flags, with where their values come from, on a database
// that has no registry of nodes.
func (f *membershipFlags) refuse(database *databaseFlags) error {
	for _, name := range membershipNames {
		if f.flags.Changed(name) {
			return database.requireRegistry(config.Origin(f.flags, name))
		}
	}
	return nil
}

// config returns how the node takes part in its cluster.
func (f *membershipFlags) config() (cluster.Config, error) {
	for _, given := range []struct {
		name   string
		values []string
	}{{"capability", f.capabilities}, {"node-role", f.roles}, {"address", []string{f.address}}} {
		if f.flags.Changed(given.name) && slices.Contains(given.values, "") {
			return cluster.Config{}, usage("--%s is empty", given.name)
		}
	}
	joined := cluster.Config{
		Name: f.name, Address: f.address, HTTPPort: f.httpPort.value, GRPCPort: f.grpcPort.value,
		Capabilities: f.capabilities, Labels: f.labels.values, Version: programVersion().Version,
		MinNodes: f.minNodes.value, StartupTimeout: f.startup.value, UniqueNames: f.uniqueNames,
		Heartbeat: cluster.HeartbeatConfig{
			Interval: f.heartbeat.value, DeadThreshold: f.threshold.value, KeepDeadNodes: !f.markDead,
		},
		Shutdown: f.leaving.config(),
	}
	for _, role := range f.roles {
		joined.Roles = append(joined.Roles, cluster.NodeRole(role))
	}
	return joined, nil
}

// defaultClusterName is what a cluster is called that nobody has named.
const defaultClusterName = "default"
