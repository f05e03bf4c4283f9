package lead

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// TermEnvironment adds the variables of a term.
func TermEnvironment(base []string, node *tenure.Node, t *tenure.Term) []string {
	return append(base[:len(base):len(base)],
		settings.RoleVariable+"="+t.Role().Name(),
		settings.TermVariable+"="+strconv.FormatInt(t.Number(), 10),
		settings.NodeVariable+"="+node.ID().String(),
		settings.NodeNameVariable+"="+node.Name())
}

// LogEvent logs an event, except failed attempts while another node leads.
func LogEvent(log *slog.Logger, event tenure.Event) {
	level, details := slog.LevelInfo, []any{"role", event.Role.Name()}
	switch event.Kind {
	case tenure.EventStateChange, tenure.EventAcquireFailed:
		level = slog.LevelDebug
	case tenure.EventLost, tenure.EventError:
		level = slog.LevelWarn
	}
	if event.Term != nil {
		details = append(details, "term", event.Term.Number())
	}
	if event.Kind == tenure.EventStateChange {
		details = append(details, "from", event.From.String(), "to", event.To.String())
	}
	if event.Err != nil {
		details = append(details, "error", console.OneLine(event.Err))
	}
	log.Log(context.Background(), level, string(event.Kind), details...)
}
