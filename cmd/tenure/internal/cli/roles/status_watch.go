package roles

import (
	"context"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/live"
	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
)

// follow shows the roles until ctx ends.
func (c *statusCommand) follow(ctx context.Context, backend connect.Backend, roles []tenure.Role) error {
	source := live.Source[status]{
		Read:   func(ctx context.Context) (status, error) { return c.read(ctx, backend, roles) },
		Listen: backend.Listen,
	}
	screen := console.NewScreen(c.out)
	last := ""
	return live.Follow(ctx, source, func(reading live.Reading[status]) error {
		text := func(width int) string {
			return console.Cut(console.AsOf(reading.At, reading.Err), width) + "\n" + console.Table(console.Fitting(reading.Value.rows, width, termColumnsEnd), width)
		}
		if screen != nil {
			return screen.Draw(text)
		}
		state := settled(reading.Value.record)
		if state == last {
			return nil
		}
		separator := ""
		if last != "" {
			separator = "\n"
		}
		last = state
		return c.out.PrintText(reading.Value.record, func(width int) string { return separator + text(width) })
	})
}

// termColumnsEnd is the number of columns about the term, which a narrow terminal shows
// alone.
const termColumnsEnd = 6

// settled returns a text that changes with everything about roles except what changes
// all the time.
func settled(shown StatusRecord) string {
	seen := StatusRecord{Roles: append([]roleRecord{}, shown.Roles...)}
	for i, role := range seen.Roles {
		if role.Leader != nil {
			leader := *role.Leader
			leader.LeaseUntil, leader.ValidSeconds = record.Time{}, 0
			seen.Roles[i].Leader = &leader
		}
	}
	return console.Encode(seen)
}
