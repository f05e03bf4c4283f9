package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/tenuretest"
)

// quiet is the node's configuration of the examples.
func quiet(name string) tenure.Config {
	return tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)}
}

// A process joins the cluster, leads a role of it, and leaves. In production the
// store is a postgres.Backend.
func ExampleJoin() {
	ctx := context.Background()
	db := tenuretest.NewDatabase()
	member, err := cluster.Join(ctx, db, quiet("api-1"), cluster.Config{
		Name:     "shop",
		HTTPPort: 8080,
		Roles:    []cluster.NodeRole{cluster.Gateway, cluster.Scheduler},
	})
	if err != nil {
		log.Fatal(err)
	}
	election, err := member.Node().Election(cluster.SchedulerRole)
	if err != nil {
		log.Fatal(err)
	}
	err = election.Run(ctx, func(context.Context, *tenure.Term) error {
		info, err := member.Registry().Info(ctx)
		if err != nil {
			return err
		}
		fmt.Println(info.Name, "has", info.ActiveNodes, "active node")
		fmt.Println("its scheduler is this node:", *info.SchedulerLeader == member.ID())
		return tenure.Done
	})
	fmt.Println(err, member.Close(ctx))
	// Output:
	// shop has 1 active node
	// its scheduler is this node: true
	// <nil> <nil>
}

// Backends holds the nodes that a gateway sends requests to.
type Backends struct {
	nodes atomic.Pointer[[]cluster.NodeInfo]
	next  atomic.Uint64
}

// Update applies a change. A program calls it for every change of a watch, in a
// goroutine that ends when the channel is closed.
func (b *Backends) Update(change cluster.Change) {
	b.nodes.Store(&change.Nodes)
	fmt.Printf("%s: %d nodes\n", change.Kind, len(change.Nodes))
}

// Pick returns the addresses of the nodes in turn.
func (b *Backends) Pick() string {
	nodes := b.nodes.Load()
	if nodes == nil || len(*nodes) == 0 {
		return "no node"
	}
	node := (*nodes)[b.next.Add(1)%uint64(len(*nodes))]
	return net.JoinHostPort(node.Address, strconv.Itoa(node.HTTPPort))
}

// A gateway keeps a list of the workers, to which it sends requests in turn.
func ExampleMember_Watch() {
	ctx := context.Background()
	db := tenuretest.NewDatabase()
	gateway, err := cluster.Join(ctx, db, quiet("gateway"), cluster.Config{Roles: []cluster.NodeRole{cluster.Gateway}})
	if err != nil {
		log.Fatal(err)
	}
	defer gateway.Close(ctx)
	var backends Backends
	changes := gateway.Watch(ctx, cluster.Filter{Role: cluster.Worker})
	backends.Update(<-changes)

	worker, err := cluster.Join(ctx, db, quiet("worker"), cluster.Config{
		Roles: []cluster.NodeRole{cluster.Worker}, Address: "10.0.0.7", HTTPPort: 8080,
	})
	if err != nil {
		log.Fatal(err)
	}
	backends.Update(<-changes)
	fmt.Println(backends.Pick())

	if err := worker.Close(ctx); err != nil {
		log.Fatal(err)
	}
	backends.Update(<-changes)
	fmt.Println(backends.Pick())
	// Output:
	// snapshot: 0 nodes
	// joined: 1 nodes
	// 10.0.0.7:8080
	// left: 0 nodes
	// no node
}

// A node answers no requests before three nodes have joined.
func ExampleMember_WaitReady() {
	ctx := context.Background()
	db := tenuretest.NewDatabase()
	config := cluster.Config{MinNodes: 3, StartupTimeout: time.Minute}
	var members []*cluster.Member
	defer func() {
		for _, member := range members {
			_ = member.Close(ctx)
		}
	}()
	for _, name := range []string{"api-1", "api-2", "api-3"} {
		member, err := cluster.Join(ctx, db, quiet(name), config)
		if err != nil {
			log.Fatal(err)
		}
		members = append(members, member)
		if len(members) == 1 {
			err := member.Ready()
			fmt.Println(errors.Is(err, cluster.ErrTooFewNodes), err)
		}
	}
	for _, member := range members {
		fmt.Println(member.Node().Name(), member.WaitReady(ctx))
	}
	// Output:
	// true the node is not active: too few nodes: 1 of 3 nodes has joined: api-1
	// api-1 <nil>
	// api-2 <nil>
	// api-3 <nil>
}

// A program that is not a member reads the nodes from the database.
func ExampleRegistry() {
	ctx := context.Background()
	db := tenuretest.NewDatabase()
	member, err := cluster.Join(ctx, db, quiet("worker-1"), cluster.Config{
		Roles: []cluster.NodeRole{cluster.Worker}, Capabilities: []string{"gpu"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Close(ctx)

	nodes, err := cluster.NewRegistry(db).ActiveNodes(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, node := range nodes {
		fmt.Println(node.Name, node.Status, node.Roles, node.HasCapability("gpu"))
	}
	// Output: worker-1 active [worker] true
}
