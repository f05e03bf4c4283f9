package settings

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/config"
)

// Live maps the flags that can change while a command runs to functions that apply a new
// value. Names in double brackets are lists of tables of the file, to be reread.
type Live map[string]func(value string) error

// LiveList returns the name of a list of tables in [Live].
func LiveList(name string) string { return "[[" + name + "]]" }

// Reloader rereads the configuration file.
type Reloader struct {
	Flags  *pflag.FlagSet // of the running command
	Config *Configuration
	Live   Live
	Log    *slog.Logger

	failed []config.Change // could not be applied; tried again
}

// OnHangup rereads the file after each SIGHUP until stop is called. Each time it is
// called through around, so as to notify others. Without a file, SIGHUP keeps its
// meaning: the end of the program.
func (r *Reloader) OnHangup(around func(func())) (stop func()) {
	if r.Config.File == nil {
		return func() {}
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, end := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-hangups:
				around(func() { r.reload(ctx) })
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		signal.Stop(hangups)
		end()
		ended.Wait()
	}
}

// reload reads the file, applies the changes if possible, with the failed ones of the
// last time, and logs the others. A file with errors changes nothing. Since an operator
// requested it, everything is logged at least as a warning, the default level.
func (r *Reloader) reload(ctx context.Context) {
	file, err := load(ctx, r.Config.Path)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			r.Log.Error("the configuration was not reloaded", "error", strings.TrimSuffix(line, "\n"))
		}
		return
	}
	changes := config.Diff(r.Config.File, file)
	r.Config.File = file
	for _, failed := range r.failed { // the obstacle may be gone
		if !slices.ContainsFunc(changes, func(c config.Change) bool { return c.Key == failed.Key }) {
			changes = append(changes, failed)
		}
	}
	r.failed = nil
	lists := map[string]error{}
	for _, change := range changes {
		r.apply(change, lists)
	}
	r.Log.Warn("the configuration was reloaded", "file", r.Config.Path, "changes", len(changes))
}

// apply applies one change, and a list as a whole at its first change; lists
// contains the applied lists with their results.
func (r *Reloader) apply(change config.Change, lists map[string]error) {
	if change.Evidence != "" && r.Flags.Lookup(change.Evidence) == nil {
		return // of another command
	}
	apply, value := r.Live[change.Flag], ""
	if change.List != "" {
		apply = r.Live[LiveList(change.List)]
	}
	switch {
	case change.Flag != "" && r.outranked(change.Flag) != "":
		r.Log.Warn("a change has no effect", "change", change.Key, "outranked_by", r.outranked(change.Flag))
	case apply == nil:
		r.Log.Warn("a change takes effect after a restart of the program", "change", change.What())
	default:
		if change.Flag != "" {
			value = r.value(change.Flag)
		}
		err, applied := lists[change.List]
		if !applied {
			err = apply(value)
		}
		if change.List != "" {
			lists[change.List] = err
		}
		if err != nil {
			r.failed = append(r.failed, change)
			r.Log.Error("a change could not be applied", "change", change.What(), "error", err)
			return
		}
		r.Log.Warn("a change was applied", "change", change.What())
	}
}

// outranked returns the flag or variable with precedence over the file's value for a
// flag, or "".
func (r *Reloader) outranked(flag string) string {
	if origin := config.Origin(r.Flags, flag); origin == "--"+flag {
		return origin
	}
	return config.Origin(r.joined(flag, nil), flag)
}

// value returns the value of a flag if the program were started now.
func (r *Reloader) value(flag string) string {
	return r.joined(flag, r.Config.File).Lookup(flag).Value.String()
}

// joined returns a flag set with one flag, as text, and applies the environment and a
// file to it.
func (r *Reloader) joined(flag string, file *config.File) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String(flag, r.Flags.Lookup(flag).DefValue, "")
	// Errors in the environment were reported at the start.
	_ = config.Apply(r.Config.command, flags, file, os.LookupEnv)
	return flags
}
