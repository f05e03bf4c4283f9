// Package records reads and writes the records of an installation outside of sessions:
// roles, their holders and history, nodes, requests and spreads.
package records

import (
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Records reads and writes the records of an installation outside of sessions. It is safe
// for concurrent use.
type Records struct {
	Names        link.Names
	Reader       *link.Reader
	Installation *install.Installation
	Running      *wakeup.Group // counts the goroutines
	offers       offerQueue
}
