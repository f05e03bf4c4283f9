package cli

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/processor"
)

// On a terminal the command shows who leads, a failover, and what an operator changes
// after a confirmation. It leaves the terminal as it was.
func TestTopFollowsChangesOnTerminal(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	top := launchOnTerminal(t, []string{"TERM=xterm", "NO_COLOR="}, place.with("top")...)
	top.shows("\x1b[?1049h")
	top.shows(">  billing")
	top.shows("\x1b[1m") // the title
	top.press("s")
	top.shows("step down one from billing? y to confirm")
	top.press("n")
	top.shows("canceled")
	top.press("sy")
	top.shows("two leads billing, term ")
	two.await("acquired")
	top.press("\t")
	top.shows(">  one")
	top.press("\x1b[Bdy")
	top.shows("node two is drain")
	one.await("acquired")
	top.press("q")
	top.exits(console.ExitDone)
	top.shows("\x1b[?25h\x1b[?1049l")
}

// A processor that fails is shown, with how often.
func TestTopShowsFailingWork(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	store := place.processors(t, processor.Config{
		Name: "counts", MaxAttempts: 1, PollInterval: 10 * time.Millisecond,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return errors.New("13 is unlucky") },
	})
	eventually(t, "the tables", func() bool { return invoke(t, place.with("processor", "list")...).code == console.ExitDone })
	top := launchOnTerminal(t, []string{"TERM=xterm", "NO_COLOR=1"}, place.with("top")...)
	top.shows(">  views")
	place.append(t, store, 13)
	top.shows("processor stopped after errors")
	top.press("q")
	top.exits(console.ExitDone)
}

// Without colors there are none, and a signal ends the command as q does.
func TestTopPrintsNoColorsIfDisabled(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	for _, way := range []struct{ variables, flags []string }{
		{[]string{"TERM=xterm", "NO_COLOR=1"}, nil}, {[]string{"TERM=xterm", "NO_COLOR="}, []string{"--color", "never"}},
	} {
		top := launchOnTerminal(t, way.variables, place.with(append([]string{"top"}, way.flags...)...)...)
		top.shows(">  billing")
		if err := top.command.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		top.exits(console.ExitDone)
		top.shows("\x1b[?1049l")
		if text := top.output(); strings.Contains(text, "\x1b[1m") || strings.Contains(text, "\x1b[7m") {
			t.Errorf("%v: colors in %q", way, text)
		}
	}
}

// Without a terminal the command says what to use.
func TestTopNeedsTerminal(t *testing.T) {
	t.Parallel()
	got := invoke(t, newPlace(t).with("top")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "tenure status --watch") {
		t.Errorf("%q", got.stderr)
	}
}

// terminalSequence moves the cursor or erases.
var terminalSequence = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// On a terminal, the roles are redrawn in place within its width, until a signal.
func TestStatusWatchRedrawsOnTerminal(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	watch := launchOnTerminal(t, []string{"TERM=xterm", "NO_COLOR=1"}, place.with("status", "--watch")...)
	watch.shows("as of ")
	watch.shows("billing  led    one")
	one.signal(syscall.SIGTERM)
	watch.shows("billing  vacant")
	if err := watch.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	watch.exits(console.ExitDone)
	for line := range strings.Lines(terminalSequence.ReplaceAllString(watch.output(), "")) {
		if text := strings.TrimRight(line, "\r\n"); len(text) > 80 {
			t.Errorf("a line is too long: %q", text)
		}
	}
}
