package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// lockCandidate is the argument with which this program is a candidate of another system:
// a bare advisory lock.
const lockCandidate = "lock-candidate"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "child-"):
		main()
	case len(os.Args) > 1 && os.Args[1] == lockCandidate:
		if err := campaignForLock(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		pgtest.Main(m)
	}
}

// campaignForLock leads while it holds a lock. Its session ends with the process.
func campaignForLock() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	report := func(leader bool) { fmt.Printf(`{"t_mono_ns":%d,"leader":%t}`+"\n", monotonic(), leader) }
	report(false)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(4711)"); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		report(true)
		select {
		case <-tick.C:
		case <-ctx.Done():
			report(false)
			return nil
		}
	}
}

func TestErrorsHaveExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{errors.New("the server did not start"), 1},
		{fmt.Errorf("sigkill: %w", &besideError{"etcd-candidate", errors.New("a candidate printed no line")}), 2},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%v: got exit code %d, want %d", test.err, got, test.want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"-rounds=2 -beside=x":            "",
		"-plot=p.svg -from=r.json":       "",
		"-summary=p.md -from=r.json":     "",
		"-rounds=0":                      "at least 1",
		"-slow=0s":                       "positive",
		"-rest=0s":                       "positive",
		"-crowd=-1":                      "must not be negative",
		"-from=r.json":                   "-from needs -plot",
		"-from=r.json -plot=p -json=j":   "-from makes no run",
		"-from=r.json -plot=p -beside=x": "-from makes no run",
		"-beside=a b":                    "quote commands",
		"-beside=":                       "name a command",
	} {
		var printed strings.Builder
		_, err := parseFlags(strings.Fields(args), &printed)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(printed.String(), want)) {
			t.Errorf("%s: got %v and the output %q, want %q", args, err, printed.String(), want)
		}
	}
}
