// Command scale measures what limits a user who grows, each figure beside its limit in the
// same run. Today that is the doorbell: how many commits a second wake a reader, beside the
// same commits without a notification, and how long after a commit its event is handled,
// beside a reader without Tenure.
//
//	make bench-scale ARGS='-rounds=9 -json=scale.json'
//
// The server's data are in the directory for temporary files. The figures mean something
// only if that is on the disk to measure, and the machine has no other load.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/internal/pgserver"
)

type options struct {
	version string
	writers []int
	rounds  int
	length  time.Duration
	json    string
	only    string
}

// record is the file that a run writes.
type record struct {
	Version  string    `json:"postgresql"`
	Doorbell []rate    `json:"doorbell"`
	Latency  []latency `json:"latency"`
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.StringVar(&o.version, "pg", "", "major version of PostgreSQL (default: the first that is installed)")
	writers := flags.String("writers", "1,8,32,128", "numbers of concurrent writers")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds; in each one every kind of commit takes its turn")
	flags.DurationVar(&o.length, "length", 2*time.Second, "length of one turn")
	flags.StringVar(&o.only, "only", "", "only \"commits\" or \"latency\"")
	flags.StringVar(&o.json, "json", "", "file for the figures as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*writers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-writers has %q; it must be a list of numbers above 0", text)
		}
		o.writers = append(o.writers, n)
	}
	return o, nil
}

func (o options) run(ctx context.Context, w io.Writer) error {
	box, err := pgserver.NewSandbox()
	if err != nil {
		return err
	}
	defer box.Close()
	server, err := box.Start(ctx, pgserver.Options{Version: o.version, Durable: true, Settings: map[string]string{
		"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "4GB",
	}})
	if err != nil {
		return err
	}
	r := record{Version: server.Installation.Version}
	fmt.Fprintf(w, "PostgreSQL %s, durable, in %s; medians of %d rounds of %v\n\n", r.Version, os.TempDir(), o.rounds, o.length)
	b, err := newBench(ctx, o, server.DSN())
	if err != nil {
		return err
	}
	defer b.close()
	if o.only != "latency" {
		r.Doorbell, err = b.doorbell(ctx, w)
	}
	if o.only != "commits" && err == nil {
		r.Latency, err = b.latencies(ctx, w)
	}
	if o.json == "" {
		return err
	}
	text, failure := json.MarshalIndent(r, "", "  ")
	if failure == nil {
		failure = os.WriteFile(o.json, append(text, '\n'), 0o644)
	}
	return errors.Join(err, failure)
}
