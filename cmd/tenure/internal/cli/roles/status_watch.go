package roles

import (
	"context"
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/live"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// follow shows the roles until ctx ends.
func (c *statusCommand) follow(ctx context.Context, backend connect.Backend, roles []tenure.Role) error {
	source := live.Source[status]{
		Read:   func(ctx context.Context) (status, error) { return c.read(ctx, backend, roles) },
		Listen: backend.Listen,
	}
	screen := console.NewScreen(c.out)
	last, answered := "", true
	return live.Follow(ctx, source, func(reading live.Reading[status]) error {
		fill := func(page *console.Page) { fillReading(page, reading) }
		if screen != nil {
			return screen.Draw(fill)
		}
		state, answers := settled(reading.Value), reading.Err == nil
		if state == last && (answers == answered || c.out.JSON()) {
			return nil
		}
		first := last == ""
		last, answered = state, answers
		return c.out.PrintText(reading.Value.record, func(page *console.Page) {
			if !first {
				page.Line("")
			}
			fill(page)
		})
	})
}

// fillReading shows the roles. While the database does not answer, the age of the last
// answer replaces the summary, which may be outdated.
func fillReading(page *console.Page, reading live.Reading[status]) {
	if reading.Err != nil {
		page.Stale()
		page.Paragraph(console.AsOf(reading.At, reading.Err))
	} else {
		reading.Value.summary.fill(page)
		page.Line(console.AsOf(reading.At, nil))
	}
	reading.Value.fillRoles(page)
}

// settled returns a text of the roles without their constantly changing values: it
// changes with everything else.
func settled(of status) string {
	shown := of.record
	seen := StatusRecord{Problems: of.summary.problems(), Roles: append([]roleRecord{}, shown.Roles...)}
	for i := range seen.Problems {
		seen.Problems[i].Causes = nil // an error can name a port or a time
	}
	for i, role := range seen.Roles {
		if role.Leader != nil {
			leader := *role.Leader
			leader.LeaseUntil, leader.ValidSeconds = record.Time{}, 0
			seen.Roles[i].Leader = &leader
		}
	}
	return console.Encode(seen) + fmt.Sprint(of.summary.alive, of.summary.busy)
}
