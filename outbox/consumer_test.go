package outbox_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
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
	_, tables, _ := strings.Cut(page, "```sql\nCREATE TABLE inbox_terms")
	tables, _, _ = strings.Cut("CREATE TABLE inbox_terms"+tables, "```")
	conn := pgtest.Conn(t, pgtest.Shared(t).Database(t))
	if _, err := conn.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	applied := ""
	for _, m := range []struct {
		term    int64
		message string
	}{{1, "a"}, {1, "b"}, {1, "b"}, {2, "b"}, {2, "c"}, {1, "c"}, {1, "d"}, {2, "d"}, {3, "d"}, {3, "e"}} {
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			apply, err := isNewMessage(t.Context(), tx, "orders", m.term, uuid.NewSHA1(uuid.Nil, []byte(m.message)))
			if apply {
				applied += m.message
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if applied != "abcde" {
		t.Errorf("applied %q", applied)
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
