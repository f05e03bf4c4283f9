package sim

import (
	"context"
	"log/slog"
	"strings"
)

// logger returns a logger that writes the engine's log records to the transcript.
func (p *Process) logger() *slog.Logger { return slog.New(&recorder{process: p}) }

// recorder is the slog handler of a process.
type recorder struct {
	process *Process
	with    []slog.Attr
}

// Enabled implements slog.Handler.
func (r *recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.process.enter(ofLog)
	var line strings.Builder
	line.WriteString(record.Message)
	record.Attrs(func(a slog.Attr) bool {
		if a.Key != "node" && a.Key != "target" { // random ids are left out
			line.WriteString(" " + a.String())
		}
		return true
	})
	r.process.log("| %s", line.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (r *recorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &recorder{r.process, append(r.with[:len(r.with):len(r.with)], attrs...)}
}

// WithGroup implements slog.Handler. The engine uses no groups.
func (r *recorder) WithGroup(string) slog.Handler { return r }
