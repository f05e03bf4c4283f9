package outbox

import (
	"cmp"
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// Position orders the messages of a topic and publisher. The epoch has precedence: after
// a failover or a repair, transaction ids can be lower than before, but the epoch is
// higher.
type Position struct {
	Epoch int64
	processor.Cursor
}

// Compare returns -1, 0 or +1. It compares the epochs, then the transactions, then the
// positions.
func (p Position) Compare(other Position) int {
	switch {
	case p.Epoch != other.Epoch:
		return cmp.Compare(p.Epoch, other.Epoch)
	case p.Cursor == other.Cursor:
		return 0
	case p.Before(other.Cursor):
		return -1
	default:
		return 1
	}
}

// String returns the position as "epoch:transaction:position".
func (p Position) String() string { return fmt.Sprintf("%d:%v", p.Epoch, p.Cursor) }

// ParsePosition parses the result of [Position.String]. An error matches
// tenure.ErrInvalidConfig.
func ParsePosition(text string) (Position, error) {
	var p Position
	var rest string
	n, _ := fmt.Sscanf(text, "%d:%d:%d%s", &p.Epoch, &p.Transaction, &p.Cursor.Position, &rest)
	if n != 3 || p.String() != text {
		return Position{}, fmt.Errorf("%w: %q is not the position of a message: it must be EPOCH:TRANSACTION:POSITION", tenure.ErrInvalidConfig, text)
	}
	return p, nil
}

// Position returns the position of the message.
func (m Message) Position() Position { return Position{m.Event.Epoch, m.Event.Cursor} }
