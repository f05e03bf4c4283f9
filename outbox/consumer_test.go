package outbox_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/outbox"
)

// isNewMessage reports, in the transaction tx, whether to apply a message.
func isNewMessage(ctx context.Context, tx pgx.Tx, topic string, term int64, id uuid.UUID) (bool, error) {
	tag, err := tx.Exec(ctx, `
		INSERT INTO inbox_terms AS known (topic, term) VALUES ($1, $2)
		ON CONFLICT (topic) DO UPDATE SET term = excluded.term WHERE known.term <= excluded.term`, topic, term)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err // the message is from a stale leader
	}
	tag, err = tx.Exec(ctx, "INSERT INTO inbox (message_id) VALUES ($1) ON CONFLICT DO NOTHING", id)
	return tag.RowsAffected() == 1, err
}

// The documentation shows the consumer above. It applies every message once and in order,
// even if a stale leader also sends messages.
func TestDocumentedConsumerDropsDuplicates(t *testing.T) {
	t.Parallel()
	page := read(t, "../docs/howto/publish-events.md")
	source := read(t, "consumer_test.go")
	begin := strings.Index(source, "// isNewMessage reports")
	if function := source[begin : begin+strings.Index(source[begin:], "\n}\n")+2]; !strings.Contains(page, "```go\n"+function+"\n```") {
		t.Errorf("docs/howto/publish-events.md does not show:\n%s", function)
	}
	apply := consumer(t)
	applied := ""
	for _, m := range []struct {
		term    int64
		message string
	}{{1, "a"}, {1, "b"}, {1, "b"}, {2, "b"}, {2, "c"}, {1, "c"}, {1, "d"}, {2, "d"}, {3, "d"}, {3, "e"}} {
		if apply(m.term, uuid.NewSHA1(uuid.Nil, []byte(m.message))) {
			applied += m.message
		}
	}
	if applied != "abcde" {
		t.Errorf("applied %q", applied)
	}
}

// A message of a stale leader that arrives after one of its successor is dropped: messages
// carry the number of the term that sends them.
func TestConsumerDropsMessageOfStaleLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := &recorder{name: "queue", mode: outbox.Batch}
	topic := outbox.Topic{Name: "orders", Publishers: []outbox.Publisher{r}}
	w.append(1)
	stop := w.run(topic)
	w.Await("the first leader's message", func() bool { _, text, _ := r.received(); return text == "1 " })
	stop()
	w.append(2)
	w.run(topic)
	w.Await("the second leader's message", func() bool { _, text, _ := r.received(); return text == "1 2 " })
	_, _, sent := r.received()
	apply := consumer(t)
	if m := sent[1]; !apply(m.Term, m.ID) {
		t.Errorf("the leader's message of term %d was dropped; want it applied", m.Term)
	}
	if m := sent[0]; apply(m.Term, m.ID) {
		t.Errorf("the stale leader's message of term %d was applied after one of term %d; want it dropped", m.Term, sent[1].Term)
	}
}

// consumer returns a function that reports whether the documented consumer, with the
// documented tables, applies a message.
func consumer(t *testing.T) func(term int64, id uuid.UUID) bool {
	t.Helper()
	_, tables, _ := strings.Cut(read(t, "../docs/howto/publish-events.md"), "```sql\nCREATE TABLE inbox_terms")
	tables, _, _ = strings.Cut("CREATE TABLE inbox_terms"+tables, "```")
	conn := pgtest.Conn(t, pgtest.Shared(t).Database(t))
	pgtest.Exec(t, conn, tables)
	return func(term int64, id uuid.UUID) (applied bool) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) (err error) {
			applied, err = isNewMessage(t.Context(), tx, "orders", term, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return applied
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
