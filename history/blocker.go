package history

import (
	"fmt"
	"time"
)

// Blocker is a transaction with a lock on the row of a role: it keeps the role's next term
// from beginning.
type Blocker struct {
	PID         int32  // of its server session; 0 for a prepared transaction
	Prepared    string // the identifier of a prepared transaction, or empty
	User        string
	Application string
	Since       time.Time // when it began, by the database's clock; zero if hidden
	// Terminable reports whether the waiting node's user may terminate it. The node does
	// so after its fence timeout.
	Terminable bool
	Advice     string // the SQL that ends it or lets nodes end it; empty if Terminable
}

// String names the transaction without its age.
func (b Blocker) String() string {
	if b.Prepared != "" {
		return fmt.Sprintf("prepared transaction %q of user %s", b.Prepared, b.User)
	}
	text := fmt.Sprintf("process %d of user %s", b.PID, b.User)
	if b.Application != "" {
		text += fmt.Sprintf(" (%s)", b.Application)
	}
	return text
}
