// Command failover measures how long a role stays without a leader after a
// fault, and for how long two processes both trust their terms, with separate
// processes on a real PostgreSQL that it starts itself. Beside each fault of the
// first kind it measures, in the same run, the limit of the machine: a bare
// connection that waits in pg_advisory_lock, and that then acquires and records as many
// roles as the nodes. It prints histograms, names the causes of slow
// rounds, draws a plot, and measures other systems in the same rounds. README.md shows how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/exactly-one/tenure/internal/netns"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "child-") {
		if err := runChild(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "failover:", err)
			os.Exit(1)
		}
		return
	}
	o, err := parseFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2) // the flags have printed it
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

// run makes the run that the options ask for, or reads an earlier one, and writes its
// files. It also writes what was measured before an error.
func (o options) run(ctx context.Context, w io.Writer) error {
	if o.from != "" {
		r, err := readRecord(o.from)
		if err != nil {
			return err
		}
		if o.plot != "" {
			err = writePlot(o.plot, r)
		}
		if o.summary != "" {
			err = errors.Join(err, r.writePage(o.summary))
		}
		if o.check {
			err = errors.Join(err, r.check(w))
		}
		return err
	}
	b := bench{options: o}
	r, err := b.measure(ctx, w)
	for _, f := range r.Faults {
		f.print(w)
	}
	if o.json != "" && r.Format != 0 {
		err = errors.Join(err, r.write(o.json))
	}
	if o.plot != "" && err == nil {
		err = writePlot(o.plot, r)
	}
	if o.summary != "" && err == nil {
		err = r.writePage(o.summary)
	}
	if o.check && err == nil {
		err = r.check(w)
	}
	return errors.Join(err, r.checkOverlaps())
}

func (b *bench) measure(ctx context.Context, w io.Writer) (record, error) {
	box, err := pgserver.NewSandbox()
	if err != nil {
		return record{}, err
	}
	defer box.Close()
	settings := maps.Clone(logSettings)
	settings["max_locks_per_transaction"] = strconv.Itoa(max(256, b.roles/20)) // nodes and bare waiters hold the locks of many roles
	settings["max_connections"] = strconv.Itoa(100 + 2*b.crowd)                // a session and a watch for each node
	options := pgserver.Options{Version: b.version, Durable: true, Fresh: true, Settings: settings}
	if b.network, b.noNetwork = netns.New(ctx, 1); b.noNetwork == nil {
		defer b.network.Close()
		options.Settings["listen_addresses"] = sandbox.Host + "," + b.network.Host(0)
		options.HBA = []string{"host all all " + b.network.CIDR() + " trust"}
	}
	defer b.killAll()
	if b.server, err = box.Start(ctx, options); err != nil {
		return record{}, err
	}
	fmt.Fprintf(w, "PostgreSQL %s, durable, loopback; %d nodes in separate processes; times in ms\n\n", b.server.Installation.Version, nodes)
	fmt.Fprintf(w, "%-22s %6s %9s %9s %9s %9s %6s %12s %6s %14s  %s\n",
		"fault", "rounds", "p50", "p99", "max", "bare p50", "ratio", "bare+begin", "ratio", "both trusting", "bound")
	return b.measureAll(ctx, w)
}

// measureAll makes the chosen scenarios. After an error, the record has the rounds
// before it.
func (b *bench) measureAll(ctx context.Context, w io.Writer) (record, error) {
	r := record{Format: recordFormat, Run: b.parameters()}
	for _, s := range scenarios {
		if !b.chosen(s.name) {
			continue
		}
		since, err := os.Stat(b.server.LogPath())
		if err != nil {
			return r, err
		}
		found, failed := s.run(ctx, b)
		b.killAll()
		log, err := readServerLog(b.server.LogPath(), since.Size())
		if err != nil {
			return r, errors.Join(failed, err)
		}
		r.Faults = append(r.Faults, found.record(log))
		if failed != nil {
			return r, fmt.Errorf("%s: %w", s.name, failed)
		}
		fmt.Fprintln(w, found)
	}
	var err error
	r.Costs, err = b.measureCosts(ctx, w)
	return r, err
}

// chosen reports whether -only permits a scenario.
func (o options) chosen(name string) bool {
	return o.only == "" || strings.Contains(","+o.only+",", ","+name+",")
}

// measureCosts makes the chosen scenarios without a fault. After an error, the result has
// those before it.
func (b *bench) measureCosts(ctx context.Context, w io.Writer) (all []costRecord, err error) {
	for _, c := range b.costs() {
		if !b.chosen(c.name) {
			continue
		}
		if len(all) == 0 {
			fmt.Fprintln(w, costHeader)
		}
		found, err := c.run(ctx, b)
		if err != nil {
			return all, fmt.Errorf("%s/nodes=%d/roles=%d: %w", c.name, c.nodes, c.roles, err)
		}
		all = append(all, found)
		fmt.Fprintln(w, found)
	}
	return all, nil
}
