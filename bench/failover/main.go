// Command failover measures how long a role stays without a leader after a
// fault, and for how long two processes both trust their terms, with separate
// processes on a real PostgreSQL that it starts itself. Beside each fault of the
// first kind it measures, in the same run, the limit of the machine: a bare
// connection that waits in pg_advisory_lock.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

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
	var b bench
	only := flag.String("only", "", "comma-separated scenarios; default all: "+strings.Join(scenarioNames(), ","))
	flag.IntVar(&b.rounds, "rounds", 40, "rounds of the scenarios that take milliseconds")
	flag.IntVar(&b.slowRounds, "slow-rounds", 5, "rounds of the scenarios that take a lease")
	flag.DurationVar(&b.lease, "lease", 3*time.Second, "the lease in the scenarios that take one")
	flag.IntVar(&b.roles, "roles", 1000, "roles in the scenario with many")
	flag.BoolVar(&b.verbose, "v", false, "print each round")
	version := flag.String("pg", "", "major version of PostgreSQL; default the newest found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx, *only, *version); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	rounds, slowRounds int
	lease              time.Duration
	roles              int
	verbose            bool

	server    *pgserver.Server
	network   *netns.Network // nil if there cannot be one
	noNetwork error          // why
	children  []*child       // alive
	all       []*child
}

func (b *bench) run(ctx context.Context, only, version string) error {
	box, err := pgserver.NewSandbox()
	if err != nil {
		return err
	}
	defer box.Close()
	options := pgserver.Options{
		Version: version, Durable: true, Fresh: true,
		Settings: map[string]string{"max_locks_per_transaction": "256"},
	}
	if b.network, b.noNetwork = netns.New(ctx, 1); b.noNetwork == nil {
		defer b.network.Close()
		options.Settings["listen_addresses"] = sandbox.Host + "," + b.network.Host(0)
		options.HBA = []string{"host all all " + b.network.CIDR() + " trust"}
	}
	defer b.killAll()
	if b.server, err = box.Start(ctx, options); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("PostgreSQL %s, durable, loopback; 3 nodes in separate processes; times in ms\n\n", b.server.Installation.Version)
	fmt.Printf("%-22s %6s %9s %9s %9s %9s %6s %12s %6s %14s  %s\n",
		"fault", "rounds", "p50", "p99", "max", "bare p50", "ratio", "bare+commit", "ratio", "both trusting", "bound")
	for _, s := range scenarios {
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		row, err := s.run(ctx, b)
		b.killAll()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Println(row)
	}
	return nil
}

// dsnAcross leads from a network namespace to the server.
func (b *bench) dsnAcross() string {
	return fmt.Sprintf("postgres://postgres@%s:%d/postgres", b.network.Host(0), b.server.Port)
}

// prepare makes the row that the bare waiters write.
func (b *bench) prepare(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.server.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE TABLE bare_term (term bigint); INSERT INTO bare_term VALUES (0)")
	return err
}
