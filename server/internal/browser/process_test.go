package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/postgres"
)

// childVariable has the settings of a process that is a node.
const childVariable = "TENURE_TEST_BROWSER_CHILD"

// child is a node in a separate process, which leads all tenants.
type child struct {
	DSN, Schema, Name string
	Lease             time.Duration
}

// process starts a node in a separate process, and returns when it campaigns.
func (w *world) process(name string, lease time.Duration) *children.Child {
	w.Helper()
	settings, err := json.Marshal(child{w.Server.DSN(), w.schema, name, lease})
	if err != nil {
		w.Fatal(err)
	}
	process, err := children.Start(children.Options{Name: name, Env: []string{childVariable + "=" + string(settings)}})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(process.Kill)
	if _, err := process.Await(w.Context(), "ready", time.Time{}); err != nil {
		w.Fatal(err)
	}
	return process
}

// member returns the node with a name.
func (w *world) member(name string) tenure.Member {
	w.Helper()
	members, err := w.backend.Members(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, m := range members {
		if m.Name == name {
			return m
		}
	}
	w.Fatalf("there is no node %s", name)
	return tenure.Member{}
}

func runChild(settings string) int {
	var c child
	err := json.Unmarshal([]byte(settings), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// run leads until the input ends.
func (c child) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	backend, err := postgres.New(c.DSN, postgres.Config{Schema: c.Schema})
	if err != nil {
		return err
	}
	defer backend.Close()
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: c.Name, Lease: c.Lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { _ = node.Close(ctx) }() // the test has its results
	for _, role := range tenants() {
		election, err := node.Election(tenure.NamedRole(role))
		if err != nil {
			return err
		}
		if err := election.Start(ctx); err != nil {
			return err
		}
	}
	children.Send(children.Report{Kind: "ready"})
	_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
	return nil
}
