package acceptance_test

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	membership "github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/postgres"
)

// childSpread is a child that shares its roles with others and answers lines on
// its standard input: "begun" with when it began to lead roles, "statements" with
// how many it has sent.
const childSpread = "spread"

func shareRoles(o order) error {
	ctx := steplog.Recording(context.Background())
	sent := newMeter()
	db, err := postgres.New(o.DSN, postgres.Config{Schema: o.Schema, Connect: sent.connect})
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("child", o.Name)
	member, err := membership.Join(ctx, db, tenure.Config{Name: o.Name, Lease: o.Lease, Logger: logger}, membership.Config{})
	if err != nil {
		return err
	}
	spread, err := member.Spread(spreadName, membership.SpreadConfig{Roles: membership.Partitions(spreadName, o.Roles)})
	if err != nil {
		return err
	}
	var (
		mu    sync.Mutex
		begun []int64
	)
	ended := make(chan error, 1)
	go func() {
		ended <- spread.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			mu.Lock()
			begun = append(begun, time.Now().UnixNano())
			mu.Unlock()
			<-ctx.Done()
			return nil
		})
	}()
	children.Send(children.Report{Kind: "ready"})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch command := lines.Text(); command {
		case "begun":
			mu.Lock()
			answer(command, begun)
			begun = nil
			mu.Unlock()
		case "statements":
			answer(command, sent.counts())
		}
	}
	select {
	case err := <-ended:
		return err
	default:
		return nil
	}
}
