package settings

import (
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/config"
)

// Live are the flags whose values a running command can change, each with what
// makes a new value take effect; and, by names in double brackets, lists of tables
// of the file, which are read from the file again.
type Live map[string]func(value string) error

// LiveList is how a list of tables is called in [Live].
func LiveList(name string) string { return "[[" + name + "]]" }

// Reloader reads the configuration file again.
type Reloader struct {
	Flags  *pflag.FlagSet // of the running command
	Config *Configuration
	Live   Live
	Log    *slog.Logger
}

// OnHangup reads the file again at each SIGHUP, until the function that it returns
// is called. Each time it is called by around, so that others can be told that it
// happens. Without a file SIGHUP keeps its meaning, which is to end the program.
func (r *Reloader) OnHangup(around func(func())) (stop func()) {
	if r.Config.File == nil {
		return func() {}
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-hangups:
				around(r.reload)
			case <-end:
				return
			}
		}
	})
	return func() {
		signal.Stop(hangups)
		close(end)
		ended.Wait()
	}
}

// reload reads the file, applies what can be applied, and says what cannot. A file
// with errors changes nothing. It is an event that an operator asked for, so all
// that it has to say is logged at the level of warnings, which is the default's.
func (r *Reloader) reload() {
	file, err := config.Load(r.Config.Path, os.LookupEnv)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			r.Log.Error("the configuration was not reloaded", "error", strings.TrimSuffix(line, "\n"))
		}
		return
	}
	changes := config.Diff(r.Config.File, file)
	r.Config.File = file
	lists := map[string]error{}
	for _, change := range changes {
		r.apply(change, lists)
	}
	r.Log.Warn("the configuration was reloaded", "file", r.Config.Path, "changes", len(changes))
}

// apply applies one change, and a list as a whole at the first change of it; lists
// are those that were applied, with what came of it.
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
		r.Log.Warn("a change takes effect when the program is started again", "change", change.What())
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
			r.Log.Error("a change could not be applied", "change", change.What(), "error", err)
			return
		}
		r.Log.Warn("a change was applied", "change", change.What())
	}
}

// outranked returns the flag or the variable that outranks the file's value for a
// flag, or "".
func (r *Reloader) outranked(flag string) string {
	if origin := config.Origin(r.Flags, flag); origin == "--"+flag {
		return origin
	}
	return config.Origin(r.joined(flag, nil), flag)
}

// value is what a flag would have if the program were started now.
func (r *Reloader) value(flag string) string {
	return r.joined(flag, r.Config.File).Lookup(flag).Value.String()
}

// joined is a set with one flag, as text, to which the environment and a file have
// been applied.
func (r *Reloader) joined(flag string, file *config.File) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String(flag, r.Flags.Lookup(flag).DefValue, "")
	// What is wrong with the environment was refused at the start.
	_ = config.Apply(r.Config.command, flags, file, os.LookupEnv)
	return flags
}
