package alerts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

const (
	// giveUpAfter is for how long a notification is tried.
	giveUpAfter = 24 * time.Hour
	// claimFor is longer than any attempt takes.
	claimFor = 20 * time.Second
	// longestPause is longer than any pause between attempts: a pause with more time left
	// began while the clock was ahead.
	longestPause = 15 * time.Minute
	// keepSettled is how long sent and abandoned notifications are kept.
	keepSettled = 7 * 24 * time.Hour
	// keepHistory is how long ended alerts and silences are kept.
	keepHistory = 90 * 24 * time.Hour
	// dueLimit is how many notifications one statement reads.
	dueLimit = 1000
	// noteTimeout bounds the record of a sent message, which outlives the term.
	noteTimeout = 5 * time.Second
)

// message is the content for one address in one attempt.
type message struct {
	address  string
	incident string
	alerts   []notifiers.Alert
}

// halves are two messages with the alerts of one.
func (m message) halves() [2]message {
	middle := len(m.alerts) / 2
	return [2]message{{m.address, m.incident, m.alerts[:middle]}, {m.address, m.incident, m.alerts[middle:]}}
}

func (m message) ids() []uuid.UUID {
	ids := make([]uuid.UUID, len(m.alerts))
	for i, a := range m.alerts {
		ids[i] = a.ID
	}
	return ids
}

// readDue returns the due notifications of a notifier, in messages of a size. A message
// has alerts of one rule and one incident, either all firing or all ended. Retries are
// apart from new notifications: an alert refused again and again must not hold up others.
func (t tables) readDue(ctx context.Context, notifier string, size int) ([]message, error) {
	type kind struct {
		address, rule, group string
		again, ended         bool
	}
	var (
		messages []message
		open     = map[kind]int{} // the message of a kind that is not full
		a        notifiers.Alert
		ended    *time.Time
		address  string
		group    string
		incident string
		attempts int
	)
	rows, _ := t.database.Query(ctx, t.SQL(readDue), notifier, dueLimit, alerting.Severities, longestPause.Milliseconds())
	into := []any{&a.ID, &a.Name, &a.Severity, &a.Labels, &a.Annotations, &a.Value, &a.Since, &a.StartedAt, &ended, &address, &attempts, &group, &incident}
	_, err := pgx.ForEachRow(rows, into, func() error {
		if ended != nil {
			a.EndedAt = *ended
		}
		of := kind{address, a.Name, group, attempts > 0, ended != nil}
		i, ok := open[of]
		if !ok || len(messages[i].alerts) >= size {
			i = len(messages)
			open[of] = i
			messages = append(messages, message{address: address, incident: incident})
		}
		messages[i].alerts = append(messages[i].alerts, a)
		a = notifiers.Alert{} // the next row must not write into its maps
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what is to be sent: %w", err)
	}
	return messages, nil
}

// readNextDue returns how long it takes until something is due; ok is false if
// nothing is pending.
func (t tables) readNextDue(ctx context.Context, notifier string) (wait time.Duration, ok bool, err error) {
	rows, _ := t.database.Query(ctx, t.SQL(readNextDue), notifier, longestPause.Milliseconds())
	ms, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[*float64])
	if err != nil {
		return 0, false, fmt.Errorf("read when something is to be sent: %w", err)
	}
	if ms == nil {
		return 0, false, nil
	}
	return time.Duration(*ms * float64(time.Millisecond)), true, nil
}

// errOutdated: a part of a message must not be sent any longer.
var errOutdated = errors.New("it is no longer to be sent")

// claim records an attempt before it is made, if the term is valid: the next leader must
// not try during the attempt. It reports whether the whole message must still be sent; if
// not, it records nothing.
func (t tables) claim(ctx context.Context, term *tenure.Term, m message) (claimed bool, err error) {
	err = postgres.InTx(ctx, t.database, term, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, t.SQL(claimNotifications), m.ids(), term.Number(), claimFor.Milliseconds())
		if err == nil && tag.RowsAffected() != int64(len(m.alerts)) {
			err = errOutdated
		}
		return err
	})
	if err != nil && !errors.Is(err, errOutdated) {
		return false, fmt.Errorf("note an attempt: %w", err)
	}
	return err == nil, nil
}

// settleSent records the acknowledgment of a message. It is true whichever node leads
// now, so it is recorded even if the term has just ended.
func (t tables) settleSent(ctx context.Context, m message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	if _, err := t.database.Exec(ctx, t.SQL(settleSent), m.ids()); err != nil {
		return fmt.Errorf("record a sent notification: %w", err)
	}
	return nil
}

// settleUnsent notes why an attempt failed, and when the next is due: not before
// a delay.
func (t tables) settleUnsent(ctx context.Context, m message, reason error, delay time.Duration) error {
	_, err := t.database.Exec(ctx, t.SQL(settleUnsent), m.ids(), storable(reason.Error(), maxError), delay.Milliseconds(), giveUpAfter.Milliseconds())
	if err != nil {
		return fmt.Errorf("note an attempt that failed: %w", err)
	}
	return nil
}

// makeDue makes all unsent notifications due now. No sender may be running.
func (t tables) makeDue(ctx context.Context) error {
	if _, err := t.database.Exec(ctx, t.SQL(makeDue)); err != nil {
		return fmt.Errorf("retry notifications: %w", err)
	}
	return nil
}

const (
	// pruneLimit is how many old notifications one statement drops, and mostPrunes
	// how often it runs at a time.
	pruneLimit = 1000
	mostPrunes = 20
)

// tidy records the notifications this node cannot send because it lacks their notifier.
// It drops two kinds of notifications:
//
//   - settled long ago;
//   - an unsent beginning with its unsent end, if the same alert is there again.
//
// It returns how many were dropped unsent.
func (t tables) tidy(ctx context.Context, set notifiers.Set, node string) (dropped int64, err error) {
	text := fmt.Sprintf("the notifier is not configured on the node %s, which leads", node)
	_, err = t.database.Exec(ctx, t.SQL(noteUnknown), append([]string{}, set.Names()...), text, giveUpAfter.Milliseconds())
	if err == nil {
		var tag pgconn.CommandTag
		tag, err = t.database.Exec(ctx, t.SQL(dropUnheard))
		dropped = tag.RowsAffected()
	}
	for i := 0; err == nil && i < mostPrunes; i++ {
		var tag pgconn.CommandTag
		if tag, err = t.database.Exec(ctx, t.SQL(pruneNotifications), keepSettled.Milliseconds(), pruneLimit); tag.RowsAffected() < pruneLimit {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("tidy up notifications: %w", err)
	}
	return dropped, err
}

// pruneRecords drops alerts and silences long after their end.
func (t tables) pruneRecords(ctx context.Context) error {
	for _, statement := range []string{pruneHistory, pruneSilences} {
		for range mostPrunes {
			tag, err := t.database.Exec(ctx, t.SQL(statement), keepHistory.Milliseconds(), pruneLimit)
			if err != nil {
				return fmt.Errorf("drop old alerts: %w", err)
			}
			if tag.RowsAffected() < pruneLimit {
				break
			}
		}
	}
	return nil
}
