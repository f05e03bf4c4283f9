// Command scale measures what limits a user who grows, each figure beside its limit in the
// same run:
//
//   - an opening: round trips, and the server's processor beside a bare pair of connections
//   - many nodes that open together, rest, and return after a restart of the server
//   - commits that wake a reader, and how long after a commit its event is handled
//   - the end of a leader until the next one begins, beside a bare waiter
//   - what a term, a run of a schedule and an event write
//   - a death among many members, 50 processors on one log, 10,000 roles of a Spread
//
// Some figures are those of make bench-failover and of benchmarks of go test, which it runs.
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
	"slices"
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
	short   bool
	check   string
	keep    string

	failover       string
	failoverRounds int

	nodes     []int
	together  int
	lockWaits string
	settle    time.Duration
	rest      time.Duration
	noRestart bool
	members   bool
	joins     int
}

// record is the file that a run writes.
type record struct {
	Version  string    `json:"postgresql"`
	Doorbell []rate    `json:"doorbell"`
	Latency  []latency `json:"latency"`
	Crowds   []crowd   `json:"crowds"`
	Writes   []written `json:"writes"`
	Rows     []row     `json:"-"` // all others of the table
	Table    []row     `json:"table"`
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
	flags.StringVar(&o.only, "only", "", "only these parts, of "+strings.Join(parts, ",")+"; default all")
	flags.BoolVar(&o.short, "short", false, "leave out what takes minutes: latency, and benchmarks of many members and roles")
	flags.StringVar(&o.check, "check", "", "`file` of ratios: exit with 1 if one has become worse by more than a third")
	flags.StringVar(&o.keep, "keep", "", "`file` to write the ratios to, for -check")
	flags.StringVar(&o.failover, "failover", "bin/bench-failover", "the program of make bench-failover")
	flags.IntVar(&o.failoverRounds, "failover-rounds", 40, "rounds of each fault of a leader")
	nodes := flags.String("nodes", "3,50,100", "numbers of nodes in a crowd")
	flags.IntVar(&o.together, "together", 0, "the most nodes of a crowd that open at the same time (default: all)")
	flags.StringVar(&o.lockWaits, "log_lock_waits", "off", "the setting of the server of a crowd")
	flags.DurationVar(&o.settle, "settle", 30*time.Second, "how long a crowd rests before it is measured")
	flags.DurationVar(&o.rest, "rest", 30*time.Second, "how long a crowd is measured at rest")
	flags.BoolVar(&o.members, "members", false, "the nodes of a crowd are members of a cluster")
	flags.BoolVar(&o.noRestart, "no-restart", false, "do not restart the server of a crowd")
	flags.IntVar(&o.joins, "joins", 0, "nodes that join a crowd at rest, one after another, for what a join costs the others")
	flags.StringVar(&o.json, "json", "", "file for the figures as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.writers, err = numbers("-writers", *writers); err != nil {
		return o, err
	}
	for part := range strings.SplitSeq(o.only, ",") {
		if part != "" && !slices.Contains(parts, part) {
			return o, fmt.Errorf("-only has %q; its parts are %s", part, strings.Join(parts, ", "))
		}
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

// parts are what -only selects.
var parts = []string{"opening", "commits", "latency", "processors", "writes", "failover", "benchmarks", "crowds"}

func (o options) wants(part string) bool {
	if o.only == "" {
		return !o.short || part != "latency"
	}
	return slices.Contains(strings.Split(o.only, ","), part)
}

func (o options) run(ctx context.Context, w io.Writer) error {
	box, err := pgserver.NewSandbox()
	if err != nil {
		return err
	}
	defer box.Close()
	var r record
	for _, part := range []struct {
		names   []string
		measure func() error
	}{
		{[]string{"opening", "commits", "latency", "processors", "writes"}, func() error { return o.onOneServer(ctx, w, box, &r) }},
		{[]string{"failover"}, func() error { return r.add(o.failovers(ctx)) }},
		{[]string{"benchmarks"}, func() error { return r.add(o.measured(ctx)) }},
		{[]string{"crowds"}, func() (err error) { r.Crowds, err = o.crowds(ctx, w, box); return err }},
	} {
		if !slices.ContainsFunc(part.names, o.wants) {
			continue
		}
		if err := part.measure(); err != nil {
			return errors.Join(err, o.write(r))
		}
	}
	r.Table = r.table()
	if len(r.Table) > 0 {
		printTable(w, r.Table)
	}
	err = o.write(r)
	if err == nil && o.keep != "" {
		err = keep(r.Table, o.keep)
	}
	if err == nil && o.check != "" {
		err = judge(w, r.Table, o.check)
	}
	return err
}

// add adds rows to the table.
func (r *record) add(rows []row, err error) error {
	r.Rows = append(r.Rows, rows...)
	return err
}

// onOneServer measures everything for which the server is the same.
func (o options) onOneServer(ctx context.Context, w io.Writer, box *pgserver.Sandbox, r *record) error {
	server, err := box.Start(ctx, pgserver.Options{Version: o.version, Durable: true, Settings: map[string]string{
		"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "4GB",
	}})
	if err != nil {
		return err
	}
	r.Version = server.Installation.Version
	fmt.Fprintf(w, "PostgreSQL %s, durable, in %s; medians of %d rounds of %v\n\n", r.Version, os.TempDir(), o.rounds, o.length)
	if o.wants("opening") {
		if err := r.add(opening(ctx, server)); err != nil {
			return err
		}
	}
	b, err := newBench(ctx, o, server.DSN())
	if err != nil {
		return err
	}
	defer b.close()
	if o.wants("commits") {
		r.Doorbell, err = b.doorbell(ctx, w)
	}
	if o.wants("latency") && err == nil {
		r.Latency, err = b.latencies(ctx, w)
	}
	if o.wants("processors") && err == nil {
		err = r.add(b.processors(ctx))
	}
	if o.wants("writes") && err == nil {
		r.Writes, err = b.writes(ctx, w)
	}
	return err
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
