//go:build linux

package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/postgres"
)

// role is what all nodes campaign for.
const role = "scheduler"

// order is what a child does: it is an agent if it has both a database and a
// path, a node of an agent if it has only a path, and otherwise a plain node.
type order struct {
	Name, DSN, Schema, Path string
	Lease                   time.Duration
	User                    int    // 0 for that of the test
	Visit                   *visit // if set, the child only does that
}

func runChild(text string) int {
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "child %s: %v\n", o.Name, err)
		return 1
	}
	return 0
}

func (o order) run() error {
	if o.Visit != nil {
		got, err := o.Visit.run()
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(got))
	}
	ctx := steplog.Recording(context.Background()) // another user may not write its file
	if err := become(o.User); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("child", o.Name)
	var backend tenure.Backend = agent.New(o.Path)
	if o.DSN != "" {
		db, err := postgres.New(o.DSN, postgres.Config{Schema: o.Schema, ApplicationName: o.Schema})
		if err != nil {
			return err
		}
		defer db.Close()
		backend = db
	}
	if o.DSN != "" && o.Path != "" {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			awaitEnd()
			cancel()
		}()
		return server.Run(ctx, server.Config{
			Backend: backend, Path: o.Path, Name: o.Name, Logger: logger,
			Timing: tenure.Timing{Lease: o.Lease, CheckInterval: o.Lease / 4},
		}, func() { children.Send(children.Report{Kind: "ready"}) })
	}
	return o.campaign(ctx, backend, logger)
}

// campaign reports every term that begins as "acquired", and from when to when the
// node said that it leads.
func (o order) campaign(ctx context.Context, backend tenure.Backend, logger *slog.Logger) error {
	node, err := tenure.Open(ctx, backend, tenure.Config{
		Name: o.Name, Lease: o.Lease, CheckInterval: o.Lease / 2, Logger: logger,
	})
	if err != nil {
		return err
	}
	election, err := node.Election(tenure.NamedRole(role))
	if err != nil {
		return err
	}
	began := make(chan struct{}, 1)
	election.OnEvent(func(event tenure.Event) {
		if event.Kind == tenure.EventAcquired {
			children.Send(children.Report{Kind: "acquired", At: event.At.UnixNano(), Term: event.Term.Number()})
			select {
			case began <- struct{}{}:
			default:
			}
		}
	})
	go func() {
		for range began {
			watch(election)
		}
	}()
	if err := election.Start(context.Background()); err != nil {
		return err
	}
	children.Send(children.Report{Kind: "ready"})
	awaitEnd()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(node.Close(ctx))
}

// watch looks once a millisecond whether the node leads. The term lasts from after
// the first look to before the last one, so that an overlap is one for certain.
func watch(election *tenure.Election) {
	if !election.IsLeader() {
		return
	}
	last := time.Now()
	children.Send(children.Report{Kind: "lead"})
	for {
		before := time.Now()
		if !election.IsLeader() {
			break
		}
		last = before
		time.Sleep(time.Millisecond)
	}
	children.Send(children.Report{Kind: "follow", Last: last.UnixNano()})
}

// awaitEnd waits for the end of the standard input.
func awaitEnd() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
	}
}
