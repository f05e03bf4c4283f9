// Command scale measures what limits a user who grows, each figure beside its limit in the
// same run. Today that is the doorbell: how many commits a second wake a reader, beside the
// same commits without a notification, and how long after a commit its event is handled,
// beside a reader without Tenure; and what many nodes cost the server that join together,
// rest, and return after a restart.
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

	nodes     []int
	lockWaits string
	settle    time.Duration
	rest      time.Duration
	noRestart bool
	members   bool
}

// record is the file that a run writes.
type record struct {
	Version  string    `json:"postgresql"`
	Doorbell []rate    `json:"doorbell"`
	Latency  []latency `json:"latency"`
	Crowds   []crowd   `json:"crowds"`
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
	flags.StringVar(&o.only, "only", "", "only \"commits\", \"latency\" or \"crowds\"")
	nodes := flags.String("nodes", "3,50,100", "numbers of nodes in a crowd")
	flags.StringVar(&o.lockWaits, "log_lock_waits", "off", "the setting of the server of a crowd")
	flags.DurationVar(&o.settle, "settle", 30*time.Second, "how long a crowd rests before it is measured")
	flags.DurationVar(&o.rest, "rest", 30*time.Second, "how long a crowd is measured at rest")
	flags.BoolVar(&o.members, "members", false, "the nodes of a crowd are members of a cluster")
	flags.BoolVar(&o.noRestart, "no-restart", false, "do not restart the server of a crowd")
	flags.StringVar(&o.json, "json", "", "file for the figures as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.writers, err = numbers("-writers", *writers); err != nil {
		return o, err
	}
	o.nodes, err = numbers("-nodes", *nodes)
	return o, err
}

// numbers reads a list of numbers above 0.
func numbers(name, list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s has %q; it must be a list of numbers above 0", name, text)
		}
		all = append(all, n)
	}
	return all, nil
}

func (o options) run(ctx context.Context, w io.Writer) error {
	box, err := pgserver.NewSandbox()
	if err != nil {
		return err
	}
	defer box.Close()
	if o.only == "crowds" {
		crowds, err := o.crowds(ctx, w, box)
		return errors.Join(err, o.write(record{Crowds: crowds}))
	}
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
	if o.only == "" && err == nil {
		r.Crowds, err = o.crowds(ctx, w, box)
	}
	return errors.Join(err, o.write(r))
}

// write writes the file, if there is one to write.
func (o options) write(r record) error {
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(o.json, append(text, '\n'), 0o644)
	}
	return err
}
