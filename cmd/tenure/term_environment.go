package main

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/exactly-one/tenure"
)

// termEnvironment adds what a term brings.
func termEnvironment(base []string, node *tenure.Node, t *tenure.Term) []string {
	return append(base[:len(base):len(base)],
		roleVariable+"="+t.Role().Name(),
		termVariable+"="+strconv.FormatInt(t.Number(), 10),
		nodeVariable+"="+node.ID().String(),
		nodeNameVariable+"="+node.Name())
}

// logEvent logs an event. The attempts of a standby are no news.
func logEvent(log *slog.Logger, event tenure.Event) {
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
		details = append(details, "error", oneLine(event.Err))
	}
	log.Log(context.Background(), level, string(event.Kind), details...)
}
