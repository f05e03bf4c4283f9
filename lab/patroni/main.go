//go:build linux

// Command patroni provokes failovers of a PostgreSQL cluster that Patroni manages,
// with etcd, while three nodes elect a leader that writes. It starts everything
// itself, measures how long the role is vacant after each kind of fault, and checks
// afterwards that no two nodes led at the same time, that terms grew, and that the
// fenced writes are there and in order.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		if err := runChild(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "patroni: node:", err)
			os.Exit(1)
		}
		return
	}
	o := options{nodeLog: os.Stderr}
	failovers := flag.Int("failovers", 200, "number of faults in all; 0: one of each kind in each mode")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the order of the faults")
	inModes := flag.String("mode", "both", "comma-separated modes, or both for the first two, or all: "+strings.Join(modeNames(), ","))
	only := flag.String("kinds", "", "comma-separated kinds of fault; default all: "+strings.Join(kindNames(), ","))
	flag.DurationVar(&o.lease, "lease", 4*time.Second, "the nodes' lease")
	flag.DurationVar(&o.failoverWait, "failover-wait", 0, "the nodes' FailoverWait")
	flag.DurationVar(&o.hold, "hold", 0, "let a fault that lasts, such as a freeze, last for at least this long")
	flag.BoolVar(&o.verbose, "v", false, "print the nodes' log and, after a failure, Patroni's")
	flag.StringVar(&o.logs, "logs", "", "directory to copy Patroni's logs to at the end")
	path := flag.String("json", "", "file to write the results to")
	page := flag.String("page", "", "page of the documents to write the results to")
	summary := flag.String("summary", "", "page of the documents to write a line for each mode to")
	from := flag.String("from", "", "results of an earlier run, to print and to write to the page instead of making a run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	var result *outcome
	if *from != "" {
		result, err = read(*from)
	} else {
		result, err = runChosen(ctx, o, *failovers, *seed, *inModes, *only)
	}
	if result != nil {
		err = errors.Join(err, result.publish(*path, *page, *summary))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "patroni:", err)
		os.Exit(1)
	}
}

func kindNames() []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

// runChosen makes a run in the modes and with the kinds of fault that are named.
func runChosen(ctx context.Context, o options, failovers int, seed uint64, modes, kinds string) (*outcome, error) {
	inModes, err := chooseModes(modes)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(kinds)
	if err != nil {
		return nil, err
	}
	inModes = slices.DeleteFunc(slices.Clone(inModes), func(m mode) bool { return len(m.among(chosen, true)) == 0 })
	if len(inModes) == 0 {
		return nil, errors.New("none of the chosen kinds of fault can be made in the chosen modes")
	}
	return run(ctx, o, failovers, seed, inModes, chosen)
}

func run(ctx context.Context, o options, failovers int, seed uint64, inModes []mode, chosen []kind) (*outcome, error) {
	installation, err := find()
	if err != nil {
		return nil, err
	}
	result := &outcome{
		Date: time.Now().UTC().Truncate(time.Second), Seed: seed, PostgreSQL: installation.Version, Versions: versions(),
		Lease: o.lease.String(), FailoverWait: o.failoverWait.String(), Verdicts: map[string]verdict{},
		Patroni: map[string]int{"ttl": ttl, "loop_wait": loopWait, "retry_timeout": retryTimeout},
	}
	fmt.Printf("Seed %d; PostgreSQL %s; Patroni with ttl %d, loop_wait %d, retry_timeout %d; lease %v, FailoverWait %v.\n",
		seed, installation.Version, ttl, loopWait, retryTimeout, o.lease, o.failoverWait)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the order must repeat
	var failed error
	for i, m := range inModes {
		count := share(failovers, i, inModes, chosen)
		if failovers > 0 && count == 0 {
			continue // or it would mean one of each kind
		}
		if failed = runMode(ctx, o, m, chosen, count, random, result); failed != nil {
			break
		}
	}
	if failed != nil {
		return result, fmt.Errorf("seed %d: %w", seed, failed)
	}
	return result, nil
}

// share is how many of the faults a mode gets, in proportion to its kinds of them.
func share(failovers, index int, inModes []mode, chosen []kind) int {
	before, all := 0, 0
	for i, m := range inModes {
		if i < index {
			before += len(m.among(chosen, true))
		}
		all += len(m.among(chosen, true))
	}
	upTo := before + len(inModes[index].among(chosen, true))
	return failovers*upTo/all - failovers*before/all
}

func choose(only string) ([]kind, error) {
	if only == "" {
		return kinds, nil
	}
	var chosen []kind
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown kind %q; there are %s", name, strings.Join(kindNames(), ", "))
		}
		chosen = append(chosen, kinds[i])
	}
	return chosen, nil
}

func runMode(ctx context.Context, o options, m mode, chosen []kind, count int, random *rand.Rand, result *outcome) error {
	b, err := newBed(ctx, o, m)
	if err != nil {
		return err
	}
	defer b.close()
	result.Namespaces = b.network.hasNamespaces()
	if chosen = m.among(chosen, result.Namespaces); len(chosen) == 0 {
		fmt.Printf("%s: the chosen kinds of fault need namespaces.\n", m.name)
		return nil
	}
	if count == 0 {
		count = len(chosen)
	}
	for i := range members {
		if err := b.spawn(ctx, fmt.Sprintf("node-%d", i+1), b.nodesDSN()); err != nil {
			return err
		}
	}
	failed := b.chaos(ctx, chosen, count, random, func(r round) {
		result.Rounds = append(result.Rounds, r)
		fmt.Println(r)
	})
	if failed == nil {
		failed = b.checkCampaigns(ctx)
	}
	for _, n := range b.nodes { // or a write could be acknowledged after the check has read the ledger
		n.Kill()
	}
	v, err := b.check(ctx)
	for _, r := range result.Rounds {
		if r.Mode == m.name && r.Violation != "" {
			v.violation("round %d, %s: %s", r.Number, r.Kind, r.Violation)
		}
	}
	if err != nil {
		return errors.Join(failed, err)
	}
	result.Verdicts[m.name] = v
	fmt.Printf("%s: %d terms, %d acknowledged fenced writes (%d lost with a primary), %d overlaps of two primaries that both took writes, %d violations.\n",
		m.name, v.Terms, v.Written, v.Lost, len(v.Overlaps), len(v.Violations))
	for _, text := range v.Overlaps {
		fmt.Println("  excused:", text)
	}
	for _, text := range v.Violations {
		failed = errors.Join(failed, errors.New(text))
	}
	return failed
}

func (r round) String() string {
	line := fmt.Sprintf("%-12s %3d %-12s %s -> %s", r.Mode, r.Number, r.Kind, r.From, r.To)
	if r.Remade {
		line += " (standbys made anew)"
	}
	if r.Kept {
		return line + "  the leader stayed"
	}
	return line + fmt.Sprintf("  vacant %7.0f ms; writes after %7.0f ms; then first session %6.0f, all sessions %6.0f, next term %6.0f ms (%.0f ms after the last session)",
		r.Vacancy, r.Writable, r.FirstSession, r.AllSessions, r.Leader, r.AfterReunion)
}
