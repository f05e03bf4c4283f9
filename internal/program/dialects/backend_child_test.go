package dialects

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/lease"
)

// The kinds of children that are nodes.
const (
	childStands = "stands" // it leads
	childWrites = "writes" // it stops in a fenced transaction, once
)

// order has the settings of a child.
type order struct {
	Driver, Source, Name string
	Dialect              lease.Dialect
	Lease                time.Duration
	Record               string // the file for its periods
	Mounted              string // the file that the child mounts, if any
}

// logOf returns the path of a child's log, next to the file of its periods.
func logOf(record string) string { return record + ".log" }

// report is a line that a child prints.
type report struct {
	Kind  string // "ready", "refused", "leads", "gap", "writing", "committed"
	Term  int64
	Lead  bool   // gap, committed: the result of the first check after it
	Error string // refused, committed
}

var printing sync.Mutex

func printReport(r report) {
	line, _ := json.Marshal(r) // it has no fields that cannot be
	printing.Lock()
	defer printing.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n')) // without a reader the child is about to be killed
}

// readOrder reads the settings of this child and opens the database.
func readOrder() (o order, backend *lease.Backend, db *sql.DB, err error) {
	if err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o); err != nil {
		return o, nil, nil, err
	}
	if db, err = sql.Open(o.Driver, o.Source); err != nil {
		return o, nil, nil, err
	}
	backend, err = lease.NewBackend(db, o.Dialect, lease.Config{})
	return o, backend, db, err
}

// nodeChild runs a child that is a node until its standard input ends.
func nodeChild(kind string) error {
	o, backend, db, err := readOrder()
	if err != nil {
		return err
	}
	record, err := os.OpenFile(o.Record, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	log, err := os.Create(logOf(o.Record))
	if err != nil {
		return err
	}
	ctx := steplog.Recording(context.Background())
	node, err := tenure.Open(ctx, backend, tenure.Config{
		Name: o.Name, Lease: o.Lease, CheckInterval: o.Lease / 3, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		printReport(report{Kind: "refused", Error: err.Error()})
		return err
	}
	election, err := node.Election(tenure.NamedRole(backendRole))
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	printReport(report{Kind: "ready"})
	go watch(election, o.Lease, record)
	if kind == childWrites {
		err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			// The transaction must not end because the context does: that it may
			// not commit is for the fence to see to.
			return writeOnce(context.WithoutCancel(ctx), db, election, term, lines)
		})
	} else {
		err = election.Start(ctx)
	}
	if err != nil {
		return err
	}
	for lines.Scan() {
	}
	return lines.Err()
}

// writeOnce begins a fenced transaction and reports "writing". After a line on standard
// input it checks whether this node leads, writes, and commits.
func writeOnce(ctx context.Context, db *sql.DB, election *tenure.Election, term *tenure.Term, lines *bufio.Scanner) error {
	leads := false
	err := lease.InTx(ctx, db, nil, term, func(tx *sql.Tx) error {
		printReport(report{Kind: "writing", Term: term.Number()})
		lines.Scan()
		leads = election.IsLeader()
		_, err := tx.ExecContext(ctx, "INSERT INTO ledger (term) VALUES (1)")
		return err
	})
	r := report{Kind: "committed", Term: term.Number(), Lead: leads}
	if err != nil {
		r.Error = err.Error()
	}
	printReport(r)
	return tenure.Done
}

// period is a time during which a node treated a term as valid, in nanoseconds since 1970.
type period struct {
	Term  int64
	From  int64 // after the first check that reported true
	Last  int64 // before the last check that reported true
	Until int64 // no earlier than this its trust would have ended
}

// watch checks once per millisecond whether this node leads. It records the periods in a
// file, so that they survive when the process is killed.
func watch(election *tenure.Election, length time.Duration, record *os.File) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var (
		current period
		number  int64
		last    = time.Now()
	)
	for {
		before := time.Now()
		term := election.Term()
		if before.Sub(last) > length/2 {
			printReport(report{Kind: "gap", Lead: term != nil})
		}
		last = before
		if term != nil {
			remaining := term.Remaining()
			if term.Number() != current.Term {
				current = period{Term: term.Number(), From: time.Now().UnixNano()}
				number++
				printReport(report{Kind: "leads", Term: current.Term})
			}
			current.Last = before.UnixNano()
			if remaining > 0 {
				current.Until = before.Add(remaining).UnixNano()
			}
			keep(record, number-1, current)
		}
		<-tick.C
	}
}

// keep writes a period to its place in a file. A period is short enough to be written
// atomically.
func keep(record *os.File, number int64, p period) {
	bytes, err := binary.Append(nil, binary.LittleEndian, p)
	if err == nil {
		_, err = record.WriteAt(bytes, number*int64(len(bytes)))
	}
	if err != nil {
		panic(err)
	}
}

// readPeriods reads the periods of a child.
func readPeriods(path string) ([]period, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	periods := make([]period, info.Size()/int64(binary.Size(period{})))
	return periods, binary.Read(file, binary.LittleEndian, periods)
}
