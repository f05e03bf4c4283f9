// Package doorbell wakes readers of other programs' rows, without a notification for each
// commit.
//
// A notifying commit holds a lock of the whole server from before its commit until after
// its flush, so notifying commits flush one by one. Therefore a writer notifies only if a
// reader is asleep:
//
//	asleep  the reader holds its slot's lock exclusively and waits for notifications
//	awake   it holds nothing, and looks for rows after short pauses
//
// A writer tries to share the locks of all slots until its transaction ends. If it cannot,
// a reader is asleep, and the writer notifies.
//
// No row is missed. A reader falls asleep when it acquires its lock, and then looks once
// more. Until then it looks after each pause. It acquires the lock only after the end of
// all transactions with a share of the lock, so this look sees their rows. All others
// notify. The rollback of a savepoint releases a shared lock together with its rows, and a
// prepared transaction keeps it. The locks do not depend on snapshots, so the isolation
// level does not matter. A dead reader loses its lock with its connection, and its
// successor begins with a look.
//
// With a ring now and then, a reader stays asleep: each ring costs it a look and no other
// statement. Rings in quick succession wake it up.
//
// Each slot serves one reader: the leader of one role. One key cannot serve several: a
// writer can only notice an exclusive lock, and only one reader can hold such a lock.
// Further readers share the last slot. The first of them to acquire its lock keeps it: all
// commits notify, and the others also look once a second. Each slot costs a writer some
// microseconds, so there are few.
package doorbell

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Slots is how many locks a writer tries. The migrations in internal/features have the same
// number.
const Slots = 4

// The keys of a channel: its hash with the number of a slot, or for the presence of the
// slot's reader with a negative number.
const (
	key      = `pg_catalog.hashtextextended(%s, %s)`
	tryShare = `pg_catalog.pg_try_advisory_xact_lock_shared(` + key + `)`
)

// TriggerBody is the body of a trigger's function in PL/pgSQL. The trigger's argument is
// the channel.
var TriggerBody = strings.NewReplacer("{try}", fmt.Sprintf(tryShare, "TG_ARGV[0]", "slot"), "{last}", fmt.Sprint(Slots-1)).Replace(`
BEGIN
    FOR slot IN 0..{last} LOOP
        IF NOT {try} THEN
            PERFORM pg_catalog.pg_notify(TG_ARGV[0], '');
            EXIT;
        END IF;
    END LOOP;
    RETURN NULL;
END
`)

// Ring returns an SQL expression. It notifies a channel if one of its readers is asleep.
// The channel is an expression of the type text.
func Ring(channel string) string {
	var awake [Slots]string
	for slot := range awake { // a subquery over the slots would cost a writer more
		awake[slot] = fmt.Sprintf(tryShare, channel, fmt.Sprint(slot))
	}
	return fmt.Sprintf(`CASE WHEN %s THEN NULL ELSE pg_catalog.pg_notify(%s, '')::text END`, strings.Join(awake[:], " AND "), channel)
}

// Line is how a reader attends a doorbell.
type Line interface {
	// Shut tries to acquire the reader's lock, and reports whether it did.
	Shut(ctx context.Context) (shut bool, err error)
	// Open releases it, and reports whether it did.
	Open(ctx context.Context) (open bool, err error)
	// Wait waits for a notification, at most for most if it is not 0.
	Wait(ctx context.Context, most time.Duration) (rung bool, err error)
}

// line is a Line on a connection listening to a channel.
type line struct {
	conn    *pgx.Conn
	channel string
	slot    int
}

// On returns the line of a reader on a connection. The connection must listen to the
// channel and serve nothing else. The locks are released with the connection.
func On(ctx context.Context, conn *pgx.Conn, channel string) (Line, error) {
	l := &line{conn: conn, channel: channel}
	for ; l.slot < Slots-1; l.slot++ {
		if free, err := l.try(ctx, "pg_try_advisory_lock", -1-l.slot); free || err != nil {
			return l, err
		}
	}
	return l, nil
}

// patience limits each statement, to notice a silent server.
const patience = 5 * time.Second

// try calls a function with one of the channel's keys.
func (l *line) try(ctx context.Context, function string, number int) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sql := fmt.Sprintf(`SELECT pg_catalog.%s(`+key+`)`, function, "$1::text", "$2::bigint")
	err = l.conn.QueryRow(ctx, sql, l.channel, number).Scan(&ok)
	return ok, err
}

func (l *line) Shut(ctx context.Context) (bool, error) {
	return l.try(ctx, "pg_try_advisory_lock", l.slot)
}

func (l *line) Open(ctx context.Context) (bool, error) {
	if l.slot == Slots-1 {
		return false, nil // it serves others too
	}
	return l.try(ctx, "pg_advisory_unlock", l.slot)
}

func (l *line) Wait(ctx context.Context, most time.Duration) (bool, error) {
	limited := ctx
	if most > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	_, err := l.conn.WaitForNotification(limited)
	if err != nil && limited.Err() != nil && !l.conn.IsClosed() {
		return false, ctx.Err() // the time has passed
	}
	return err == nil, err
}
