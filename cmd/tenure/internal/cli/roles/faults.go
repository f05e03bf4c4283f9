package roles

import (
	"context"
	"fmt"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

// Fault is a schedule, a processor, an alert or a kind of old rows that is not well.
type Fault struct {
	Name string // with how often or for how long, if that is known
	What string // what is wrong, such as "schedule fails"
}

// Work reads what is wrong with schedules, processors, alerts and retention.
type Work struct {
	reader *workReader
	close  func()
}

// OpenWork prepares to read the work of an installation, and connects later. On leases,
// which have none, it returns nil.
func OpenWork(ctx context.Context, database *connect.DatabaseFlags, backend connect.Backend, name string) (*Work, error) {
	sessions, ok := backend.(*postgres.Backend)
	if !ok {
		return nil, nil
	}
	target, err := database.Target()
	if err != nil {
		return nil, err
	}
	pool, err := target.Pool(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Work{&workReader{sessions, pool}, pool.Close}, nil
}

// Close closes the connections.
func (w *Work) Close() {
	if w != nil {
		w.close()
	}
}

// Faults reads all faults, in the order of tenure status: work, then alerts, then old rows.
// A feature that cannot be read is a fault too.
func (w *Work) Faults(ctx context.Context) []Fault {
	if w == nil {
		return nil
	}
	var s summary
	w.reader.read(ctx, &s)
	return s.all()
}

// all lists each fault.
func (s *summary) all() (all []Fault) {
	for _, f := range s.faults {
		for _, l := range f.of {
			one := Fault{console.Flatten(l.name), f.one}
			if l.lasted >= 0 {
				one.Name = fmt.Sprintf("%s (%s)", one.Name, console.SpellDuration(l.lasted))
			}
			all = append(all, one)
		}
	}
	for _, u := range s.unread {
		all = append(all, Fault{u.what, "cannot be read: " + console.Flatten(u.cause.Error())})
	}
	return all
}
