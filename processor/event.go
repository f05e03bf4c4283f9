package processor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Cursor is a position in a log: just after the event with these two numbers.
//
// The position alone is not sufficient. An event gets its position before its
// transaction commits, so an event with a lower position can appear after one
// with a higher position was read. The transaction id resolves this: once every
// transaction below a snapshot's horizon has ended, no event can appear before
// the horizon.
type Cursor struct {
	Transaction uint64
	Position    int64
}

// Before reports whether c is before other.
func (c Cursor) Before(other Cursor) bool { return c.compare(other) < 0 }

func (c Cursor) compare(other Cursor) int {
	return cmp.Or(cmp.Compare(c.Transaction, other.Transaction), cmp.Compare(c.Position, other.Position))
}

// String returns the cursor as "transaction:position".
func (c Cursor) String() string { return fmt.Sprintf("%d:%d", c.Transaction, c.Position) }

// ParseCursor parses the format of String.
func ParseCursor(text string) (Cursor, error) {
	var c Cursor
	var rest string
	if n, _ := fmt.Sscanf(text, "%d:%d%s", &c.Transaction, &c.Position, &rest); n != 2 || c.String() != text {
		return Cursor{}, invalid("%q is not a cursor: write TRANSACTION:POSITION, as in 742:1031", text)
	}
	return c, nil
}

// Event is one entry of a log.
type Event struct {
	Cursor
	// Epoch increases whenever the log's transaction ids may be lower than
	// before, for example after a failover. Cursors of different epochs cannot
	// be compared.
	Epoch       int64
	Type        string
	Tags        []string // each "key=value"
	Data        json.RawMessage
	OccurredAt  time.Time
	Correlation uuid.UUID // uuid.Nil if there is none
	Causation   uuid.UUID // uuid.Nil if there is none
}

// Tag returns the value of the first tag with a key.
func (e Event) Tag(key string) (value string, found bool) {
	for _, tag := range e.Tags {
		if len(tag) > len(key) && tag[len(key)] == '=' && tag[:len(key)] == key {
			return tag[len(key)+1:], true
		}
	}
	return "", false
}
