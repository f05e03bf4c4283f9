package processor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
)

// A leader measures the lag of a processor with work every measureInterval. At rest, it
// records an empty log every restInterval if its loop saw no event. The recorder checks
// for due measurements at every measureTick, without a statement.
const (
	measureTick     = time.Second
	measureInterval = 5 * time.Second
	restInterval    = 15 * time.Second
)

// gauge has a loop's view of its log. The loop and the recorder share it.
type gauge struct {
	mu       sync.Mutex
	resting  bool      // the loop waits for events
	empty    time.Time // when the loop last saw no waiting event
	counted  time.Time // when the recorder last counted
	recorded time.Time // when the recorded figures were true
	clear    bool      // the recorded figures show no waiting event
}

// sawNothing records that no event waits now.
func (g *gauge) sawNothing() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty = time.Now()
}

// rest notes whether the loop waits for events.
func (g *gauge) rest(resting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resting = resting
}

// due returns the time of an empty read to record, or whether to count.
func (g *gauge) due(now time.Time) (empty time.Time, count bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pause := measureInterval
	if g.resting {
		pause = restInterval
	}
	hangs := !g.resting && now.Sub(g.empty) >= measureInterval // since it last saw no event
	switch {
	case g.empty.After(g.recorded) && !hangs:
		if g.clear && now.Sub(g.recorded) < restInterval {
			return time.Time{}, false
		}
		return g.empty, false
	case now.Sub(g.counted) < measureInterval || now.Sub(g.recorded) < pause && g.clear:
		return time.Time{}, false
	}
	g.counted = now
	return time.Time{}, true
}

// early returns the time of an empty read that is due after half the interval at the
// latest, if the figures of other processors are recorded now. So processors that came to
// rest at different times are soon recorded by one statement.
func (g *gauge) early(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clear && g.empty.After(g.recorded) && now.Sub(g.recorded) >= restInterval/2 {
		return g.empty
	}
	return time.Time{}
}

// record keeps a measurement as recorded in the database.
func (g *gauge) record(m measurement) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.recorded, g.clear = m.at, m.behind == 0
}

// measurement is how many events waited for a processor at a time.
type measurement struct {
	loop *loop
	at   time.Time
	backlog
}

// recorder records the lag of the processors of a group in a term, whatever their loops do.
// It uses one connection at a time.
type recorder struct {
	database Database
	tables   schema.Tables
	term     *tenure.Term
	loops    []*loop
	log      *slog.Logger
	failing  bool
}

// run records until ctx ends.
func (r *recorder) run(ctx context.Context) {
	ticker := time.NewTicker(measureTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := r.measure(ctx)
		if err != nil && !r.failing && ctx.Err() == nil {
			r.log.Warn("measuring the lag failed", "error", err)
		}
		r.failing = err != nil
	}
}

// measure records the due figures.
func (r *recorder) measure(ctx context.Context) error {
	all, counting := r.due(time.Now())
	counted, failure := r.count(ctx, counting)
	if all = append(all, counted...); len(all) == 0 {
		return failure
	}
	if err := r.write(ctx, all); err != nil {
		return err
	}
	return failure
}

// due returns the empty reads to record and the loops to count for.
func (r *recorder) due(now time.Time) (all []measurement, counting []*loop) {
	var others []*loop
	for _, l := range r.loops {
		empty, count := l.gauge.due(now)
		switch {
		case count:
			counting = append(counting, l)
		case !empty.IsZero():
			all = append(all, measurement{loop: l, at: empty})
		default:
			others = append(others, l)
		}
	}
	if len(all)+len(counting) > 0 {
		for _, l := range others {
			if empty := l.gauge.early(now); !empty.IsZero() {
				all = append(all, measurement{loop: l, at: empty})
			}
		}
	}
	return all, counting
}

// count counts the waiting events of processors. If a log cannot be read in time, it is
// not read for the other processors.
func (r *recorder) count(ctx context.Context, loops []*loop) (all []measurement, failure error) {
	if len(loops) == 0 {
		return nil, nil
	}
	cursors, err := r.cursors(ctx, loops)
	if err != nil {
		return nil, err
	}
	unreadable := map[string]bool{}
	for _, l := range loops {
		cursor, claimed := cursors[l.config.Name]
		if query := l.config.Log.query; claimed && !unreadable[query] {
			at := time.Now()
			limited, cancel := context.WithTimeout(ctx, measureInterval)
			waiting, err := l.reader.count(limited, cursor)
			cancel()
			if err != nil {
				failure, unreadable[query] = fmt.Errorf("count the events of %s: %w", l.config.Name, err), true
				continue
			}
			all = append(all, measurement{l, at, waiting})
		}
	}
	return all, failure
}

// cursors returns the cursors of the processors claimed by this term. An operator may have
// moved a cursor while the loop runs a batch.
func (r *recorder) cursors(ctx context.Context, loops []*loop) (map[string]Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, measureInterval)
	defer cancel()
	names := make([]string, len(loops))
	for i, l := range loops {
		names[i] = l.config.Name
	}
	rows, _ := r.database.Query(ctx, r.tables.SQL(readCursors), names, r.term.Role().Name(), r.term.Number()) // rows reports the error
	cursors := map[string]Cursor{}
	var name string
	var at Cursor
	_, err := pgx.ForEachRow(rows, []any{&name, &at.Transaction, &at.Position}, func() error {
		cursors[name] = at
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the cursors: %w", err)
	}
	return cursors, nil
}

// write records figures in one statement.
func (r *recorder) write(ctx context.Context, all []measurement) error {
	ctx, cancel := context.WithTimeout(ctx, measureInterval)
	defer cancel()
	n := len(all)
	names, behind, held := make([]string, n), make([]int64, n), make([]int64, n)
	more, since, ages := make([]bool, n), make([]*time.Time, n), make([]float64, n)
	for i, m := range all {
		names[i], behind[i], more[i], held[i], since[i] = m.loop.config.Name, m.behind, m.more, m.held, m.since
		ages[i] = float64(time.Since(m.at)) / float64(time.Millisecond)
	}
	_, err := r.database.Exec(ctx, r.tables.SQL(recordLags), names, behind, more, held, since, ages, r.term.Role().Name(), r.term.Number())
	if err != nil {
		return fmt.Errorf("record the lag: %w", err)
	}
	for _, m := range all {
		m.loop.gauge.record(m)
	}
	return nil
}
