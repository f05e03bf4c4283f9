package roles

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
)

// outageReader is a backend with a record of outages.
type outageReader interface {
	Outages(ctx context.Context, query history.Query) ([]history.Outage, error)
}

// readOutages returns the outages of a query; none if the backend records none.
func readOutages(ctx context.Context, backend connect.Backend, query history.Query) ([]history.Outage, error) {
	reader, ok := backend.(outageReader)
	if !ok {
		return nil, nil
	}
	return reader.Outages(ctx, query)
}

// maxShownOutages is how many outages precede a table of terms.
const maxShownOutages = 3

// outagesOf returns the latest outages in the time of the terms. With --role, the role
// stood still in each of them.
func (c *historyCommand) outagesOf(ctx context.Context, backend connect.Backend, query history.Query, terms []history.Term) ([]history.Outage, error) {
	if c.out.JSON() || len(terms) == 0 {
		return nil, nil
	}
	within := history.Query{Since: query.Since, Until: query.Until}
	if oldest := terms[len(terms)-1].Began; oldest.After(within.Since) {
		within.Since = oldest
	}
	outages, err := readOutages(ctx, backend, within)
	if query.Role != "" {
		outages = slices.DeleteFunc(outages, func(o history.Outage) bool { return !slices.Contains(o.Roles, query.Role) })
	}
	return outages[:min(len(outages), maxShownOutages)], err
}

// outageSentence describes an outage and how long ago it ended.
func outageSentence(o history.Outage, now time.Time) string {
	cause := "No node reached the database"
	if o.ServerChanged {
		cause = "The database was down or replaced"
	}
	still := fmt.Sprintf("%d roles stood still", len(o.Roles))
	if len(o.Roles) == 1 {
		still = "1 role stood still"
	}
	return fmt.Sprintf("%s for %s, from %s until %s, %s ago; %s.", cause, console.SpellDuration(o.Ended.Sub(o.Began)),
		console.ShortTime(o.Began), console.ShortTime(o.Ended), console.SpellDuration(now.Sub(o.Ended)), still)
}
