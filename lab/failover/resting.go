package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/statements"
	"github.com/exactly-one/tenure/postgres"
)

// runResting runs nodes with the default times, whose statements it counts. It reports the
// counts when it is asked.
//
// It reports "ready" when it has started, and "joined" when all its nodes are open.
func runResting(o childOptions, commands <-chan string) error {
	ctx := context.Background()
	counted, sent := &counter{wanted: o.roles}, &statements.Counter{}
	children.Send(children.Report{Kind: "ready"})
	for i := range o.nodes {
		begun := time.Now()
		node, err := restingNode(ctx, o, i, sent)
		if err != nil {
			return err
		}
		if _, err := campaign(ctx, node, o.roles, counted); err != nil {
			return err
		}
		if i+1 < o.nodes { // the machine also runs all other nodes, which learn of the join and must not miss their heartbeats
			if err := rest(ctx, 3*time.Since(begun)); err != nil {
				return err
			}
		}
	}
	children.Send(children.Report{Kind: "joined"})
	for range commands {
		data, err := json.Marshal(sent.Counts())
		if err != nil {
			return err
		}
		children.Send(children.Report{Kind: "count", Data: data})
	}
	return nil
}

// restingNode opens a node, which lives as long as the process.
func restingNode(ctx context.Context, o childOptions, number int, sent *statements.Counter) (*tenure.Node, error) {
	db, err := postgres.New(o.dsn, postgres.Config{Connect: sent.Connect})
	if err != nil {
		return nil, err
	}
	config := tenure.Config{Name: fmt.Sprintf("%s-%d", o.name, number), Logger: errorLogger()}
	if !o.member {
		return tenure.Open(ctx, db, config)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	member, err := cluster.Join(ctx, db, config, cluster.Config{})
	if err != nil {
		return nil, err
	}
	return member.Node(), nil
}

// campaign makes a node a candidate for roles, and returns the first election.
func campaign(ctx context.Context, node *tenure.Node, roles int, counted *counter) (*tenure.Election, error) {
	var first *tenure.Election
	for i := range roles {
		e, err := node.ElectionWith(tenure.NamedRole(fmt.Sprintf("role-%05d", i)), tenure.ElectionConfig{})
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = e
		}
		e.OnEvent(counted.event)
		if err := e.Start(ctx); err != nil {
			return nil, err
		}
	}
	return first, nil
}

func errorLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
