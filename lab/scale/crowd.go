package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/postgres"
)

// crowd is what many nodes cost the server: all of them in this process, candidates for no role.
type crowd struct {
	Nodes int `json:"nodes"`
	// Joined and Returned are the seconds until all nodes are open that begin at the same
	// time, and until they are open again after a restart of the server.
	Joined   float64 `json:"joined_seconds"`
	Returned float64 `json:"returned_seconds"`
	// JoinCPU and ReturnCPU are milliseconds of the server's processors for each node.
	JoinCPU   float64 `json:"join_server_ms"`
	ReturnCPU float64 `json:"return_server_ms"`
	// Session and Watch are milliseconds of the server's processors for each node and second
	// at rest, on its two connections.
	Session float64   `json:"session_ms_per_second"`
	Watch   float64   `json:"watch_ms_per_second"`
	Rest    rest      `json:"rest"`
	Join    *joinCost `json:"join,omitempty"`
	Bare    *crowd    `json:"bare,omitempty"` // as many pairs of connections without Tenure
}

// rest is what a node at rest writes and occupies.
type rest struct {
	WAL      float64 `json:"wal_mb_per_hour"`
	HOT      float64 `json:"hot_updates"`      // the part of the updates of nodes that touches no index
	Table    float64 `json:"table_kb"`         // the table of nodes with its indexes, of all nodes
	Memory   float64 `json:"server_memory_mb"` // private to the processes of its connections
	Commands float64 `json:"transactions_per_second"`
	Tables   []table `json:"tables"`
}

// table is what became of a table at rest.
type table struct {
	Name    string  `json:"table"`
	Before  float64 `json:"before_kb"` // with its indexes
	After   float64 `json:"after_kb"`
	Rows    int     `json:"rows"`
	Dead    int     `json:"dead_rows"`
	Updates int     `json:"updates"`
	HOT     int     `json:"hot_updates"`
	Vacuums int     `json:"autovacuums"`
}

func (r rest) String() string {
	text := fmt.Sprintf("       at rest, a node: %.2f MB of WAL an hour, %.2f transactions a second, %.1f MB of memory on the server; %.0f %% of the updates are HOT; the table of nodes has %.0f kB",
		r.WAL, r.Commands, r.Memory, 100*r.HOT, r.Table)
	for _, t := range r.Tables {
		text += fmt.Sprintf("\n       %-24s %6.0f kB, then %6.0f kB; %5d rows, %5d dead; %7d updates, %7d HOT; %3d autovacuums", t.Name, t.Before, t.After, t.Rows, t.Dead, t.Updates, t.HOT, t.Vacuums)
	}
	return text
}

func (c crowd) String() string {
	return fmt.Sprintf("%6d %10.1f %12.1f %10.1f %12.1f %12.2f %12.2f", c.Nodes, c.Joined, c.JoinCPU, c.Returned, c.ReturnCPU, c.Session, c.Watch)
}

const crowdHeader = " nodes   joined s  server ms/n returned s  server ms/n session ms/s   watch ms/s"

// crowds measures each number of nodes on a server that is started for it.
func (o options) crowds(ctx context.Context, w io.Writer, box *pgserver.Sandbox) (found []crowd, err error) {
	fmt.Fprintln(w, crowdHeader)
	for _, nodes := range o.nodes {
		settings := map[string]string{"max_connections": fmt.Sprint(2*nodes + 50), "log_lock_waits": o.lockWaits}
		if o.joins > 0 {
			settings["max_connections"] = fmt.Sprint(2*(nodes+o.joins) + 50)
			settings["shared_preload_libraries"], settings["pg_stat_statements.track"] = "pg_stat_statements", "all"
		}
		c, err := o.onServer(ctx, box, settings, nodes, o.nodesOf)
		if err != nil {
			return found, err
		}
		beside := o
		beside.joins, beside.rest = 0, min(o.rest, bareRest)
		bare, err := beside.barePairs(ctx, box, settings, nodes)
		if err != nil {
			return found, err
		}
		c.Bare = &bare
		fmt.Fprintln(w, c)
		fmt.Fprintln(w, c.Rest)
		if c.Join != nil {
			fmt.Fprintln(w, c.Join)
		}
		found = append(found, c)
	}
	return found, nil
}

// leastPairs are enough for the server's processor time, which the system counts in
// hundredths of a second: three pairs take one or two of them.
const leastPairs = 40

// barePairs measures as many bare pairs as nodes, and the processor time of each with more
// pairs if there are few.
func (o options) barePairs(ctx context.Context, box *pgserver.Sandbox, settings map[string]string, nodes int) (crowd, error) {
	bare, err := o.onServer(ctx, box, settings, nodes, pairsOf)
	if err != nil || nodes >= leastPairs {
		return bare, err
	}
	settings = maps.Clone(settings)
	settings["max_connections"] = fmt.Sprint(2*leastPairs + 50)
	more, err := o.onServer(ctx, box, settings, leastPairs, pairsOf)
	bare.JoinCPU, bare.Session, bare.Watch = more.JoinCPU, more.Session, more.Watch
	return bare, err
}

// bareRest is the longest time at rest of the bare pairs, which do nothing then.
const bareRest = 30 * time.Second

// onServer measures a crowd on a server that is started for it.
func (o options) onServer(ctx context.Context, box *pgserver.Sandbox, settings map[string]string, nodes int, of kindOfCrowd) (c crowd, err error) {
	server, err := box.Start(ctx, pgserver.Options{Version: o.version, Durable: true, Settings: settings})
	if err != nil {
		return c, err
	}
	c, err = o.crowd(ctx, server, nodes, of)
	return c, errors.Join(err, server.Stop(ctx, pgserver.Fast))
}

// kindOfCrowd prepares an installation. join opens one of the crowd and returns what closes
// it; returned waits until all are open again after a restart, nil if they do not return.
type kindOfCrowd func(ctx context.Context, dsn string) (join func(ctx context.Context, number int) (leave func(context.Context) error, err error), returned func(ctx context.Context, nodes int) error, end func(), err error)

// nodesOf is a crowd of nodes.
func (o options) nodesOf(ctx context.Context, dsn string) (join func(context.Context, int) (func(context.Context) error, error), back func(context.Context, int) error, end func(), err error) {
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return nil, nil, nil, err
	}
	if err := backend.Migrate(ctx); err != nil {
		backend.Close()
		return nil, nil, nil, err
	}
	join = func(ctx context.Context, number int) (func(context.Context) error, error) {
		return o.join(ctx, backend, tenure.Config{Name: fmt.Sprintf("crowd-%d", number), Logger: slog.New(slog.DiscardHandler)})
	}
	if !o.noRestart {
		back = func(ctx context.Context, nodes int) error { return returned(ctx, dsn, nodes) }
	}
	return join, back, backend.Close, nil
}

// pairsOf is a crowd of bare pairs of connections.
func pairsOf(ctx context.Context, dsn string) (join func(context.Context, int) (func(context.Context) error, error), back func(context.Context, int) error, end func(), err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, bareTable)
	join = func(ctx context.Context, number int) (func(context.Context) error, error) {
		return barePair(ctx, dsn, number)
	}
	return join, nil, func() {}, err
}

func (o options) crowd(ctx context.Context, server *pgserver.Server, nodes int, of kindOfCrowd) (c crowd, err error) {
	c.Nodes = nodes
	join, back, end, err := of(ctx, server.DSN())
	if err != nil {
		return c, err
	}
	defer end()
	open, began := make([]func(context.Context) error, nodes), time.Now() // what closes each node
	before := serverTime(server.PID())
	var group sync.WaitGroup
	failures := make([]error, nodes)
	turns := make(chan struct{}, cmp.Or(o.together, nodes))
	for i := range nodes {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			open[i], failures[i] = join(ctx, i)
		})
	}
	group.Wait()
	defer func() {
		for _, leave := range open {
			if leave != nil {
				group.Go(func() { _ = leave(context.WithoutCancel(ctx)) }) // the server ends with the program
			}
		}
		group.Wait()
	}()
	if err := errors.Join(failures...); err != nil {
		return c, err
	}
	c.Joined, c.JoinCPU = time.Since(began).Seconds(), milliseconds(serverTime(server.PID())-before)/float64(nodes)

	pause(ctx, o.settle)
	kinds, err := connections(ctx, server.DSN())
	if err != nil {
		return c, err
	}
	written, err := readUsage(ctx, server.DSN())
	if err != nil {
		return c, err
	}
	tables, err := readTables(ctx, server.DSN())
	if err != nil {
		return c, err
	}
	session, watch, began := timeOf(kinds["session"]), timeOf(kinds["watch"]), time.Now()
	pause(ctx, o.rest)
	each := float64(nodes) * time.Since(began).Seconds()
	c.Session, c.Watch = milliseconds(timeOf(kinds["session"])-session)/each, milliseconds(timeOf(kinds["watch"])-watch)/each
	after, err := readUsage(ctx, server.DSN())
	if err != nil {
		return c, err
	}
	c.Rest = after.since(written, each)
	if c.Rest.Tables, err = changed(ctx, server.DSN(), tables); err != nil {
		return c, err
	}
	c.Rest.Memory = float64(privateMemory(slices.Concat(kinds["session"], kinds["watch"]))) / 1024 / float64(nodes)
	if o.joins > 0 {
		cost, err := o.joinCost(ctx, server)
		if err != nil {
			return c, err
		}
		c.Join = &cost
	}
	if back == nil {
		return c, ctx.Err()
	}
	err = c.restart(ctx, server, back)
	return c, err
}

// restart restarts the server and measures until the crowd is back.
func (c *crowd) restart(ctx context.Context, server *pgserver.Server, back func(context.Context, int) error) error {
	began := time.Now()
	if err := server.Restart(ctx, pgserver.Immediate); err != nil {
		return err
	}
	if err := back(ctx, c.Nodes); err != nil {
		return err
	}
	c.Returned, c.ReturnCPU = time.Since(began).Seconds(), milliseconds(serverTime(server.PID()))/float64(c.Nodes)
	return ctx.Err()
}

// join opens a node and returns what closes it.
func (o options) join(ctx context.Context, backend *postgres.Backend, config tenure.Config) (leave func(context.Context) error, err error) {
	if !o.members {
		node, err := tenure.Open(ctx, backend, config)
		if err != nil {
			return nil, err
		}
		return node.Close, nil
	}
	member, err := cluster.Join(ctx, backend, config, cluster.Config{})
	if err != nil {
		return nil, err
	}
	return member.Shutdown, nil
}

// returned waits until all nodes have opened a session since the server started.
func returned(ctx context.Context, dsn string, nodes int) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for {
		var back int
		err := conn.QueryRow(ctx, "SELECT count(*) FROM tenure_nodes WHERE status <> 'dead' AND backend_start > pg_postmaster_start_time()").Scan(&back)
		if err != nil || back == nodes {
			return err
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// connections returns the processes of the server for the connections of nodes, by kind.
func connections(ctx context.Context, dsn string) (map[string][]int, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, "SELECT pid, split_part(application_name, ' ', -1) FROM pg_stat_activity WHERE application_name LIKE '%crowd-%'")
	if err != nil {
		return nil, err
	}
	found := map[string][]int{}
	var (
		pid  int
		kind string
	)
	_, err = pgx.ForEachRow(rows, []any{&pid, &kind}, func() error {
		found[kind] = append(found[kind], pid)
		return nil
	})
	return found, err
}

// usage is what a server has written so far.
type usage struct{ wal, updates, hot, table, transactions float64 }

func readUsage(ctx context.Context, dsn string) (u usage, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return u, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const query = `
SELECT
    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8,
    t.n_tup_upd::float8,
    t.n_tup_hot_upd::float8,
    pg_total_relation_size(t.relid)::float8,
    d.xact_commit::float8
FROM pg_stat_user_tables t, pg_stat_database d
WHERE t.relname IN ('tenure_nodes', 'pairs') AND d.datname = current_database()`
	err = conn.QueryRow(ctx, query).Scan(&u.wal, &u.updates, &u.hot, &u.table, &u.transactions)
	return u, err
}

// readTables reads the tables of an installation.
func readTables(ctx context.Context, dsn string) ([]table, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, _ := conn.Query(ctx, `
SELECT relname, 0::float8, pg_total_relation_size(relid) / 1024::float8, n_live_tup, n_dead_tup, n_tup_upd, n_tup_hot_upd, autovacuum_count
FROM pg_stat_user_tables WHERE relname LIKE 'tenure\_%' ORDER BY relname`) // the error is that of CollectRows
	return pgx.CollectRows(rows, pgx.RowToStructByPos[table])
}

// changed returns the tables that were written to or vacuumed since an earlier reading.
func changed(ctx context.Context, dsn string, before []table) (all []table, err error) {
	now, err := readTables(ctx, dsn)
	if err != nil {
		return nil, err
	}
	for i, t := range now {
		b := before[i]
		t.Before, t.Updates, t.HOT, t.Vacuums = b.After, t.Updates-b.Updates, t.HOT-b.HOT, t.Vacuums-b.Vacuums
		if t.Updates > 0 || t.Vacuums > 0 || t.After != t.Before {
			all = append(all, t)
		}
	}
	return all, nil
}

// since returns what was written after an earlier reading, for each node; each is the
// number of nodes times the seconds between both.
func (u usage) since(before usage, each float64) rest {
	r := rest{WAL: (u.wal - before.wal) / each * 3600 / (1 << 20), Table: u.table / 1024, Commands: (u.transactions - before.transactions) / each}
	if updates := u.updates - before.updates; updates > 0 {
		r.HOT = (u.hot - before.hot) / updates
	}
	return r
}

// privateMemory returns the kilobytes of memory that only these processes use.
func privateMemory(processes []int) (sum int) {
	for _, pid := range processes {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)) // a process that has ended counts nothing
		for line := range strings.Lines(string(text)) {
			var kilobytes int
			if name, value, found := strings.Cut(line, ":"); found && strings.HasPrefix(name, "Private_") {
				_, _ = fmt.Sscan(value, &kilobytes)
				sum += kilobytes
			}
		}
	}
	return sum
}

// timeOf returns the time that processes have used on a processor so far.
func timeOf(processes []int) (sum time.Duration) {
	for _, pid := range processes {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid)) // a process that has ended counts nothing
		var used time.Duration
		_, _ = fmt.Sscan(string(text), &used)
		sum += used
	}
	return sum
}

// serverTime returns the time of a server's process, of its children, and of those that
// have ended, which the kernel counts in hundredths of a second.
func serverTime(postmaster int) time.Duration {
	const tick = 10 * time.Millisecond
	var ended, user, system int64
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", postmaster))
	if _, after, found := strings.Cut(string(text), ") "); found {
		if fields := strings.Fields(after); len(fields) > 14 {
			_, _ = fmt.Sscan(strings.Join(fields[13:15], " "), &user, &system)
			ended = user + system
		}
	}
	processes := []int{postmaster}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", postmaster))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			var pid int
			_, _ = fmt.Sscan(field, &pid)
			processes = append(processes, pid)
		}
	}
	return timeOf(processes) + time.Duration(ended)*tick
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
