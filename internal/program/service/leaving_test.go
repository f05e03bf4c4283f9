package service

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/tenuretest"
)

// A reloaded configuration takes effect on a running member, and a removed key
// restores the default.
func TestReloadChangesLeaving(t *testing.T) {
	t.Parallel()
	var f leavingFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.register(flags)
	if err := flags.Parse([]string{"--drain-timeout", "1h", "--force-after", "2h"}); err != nil {
		t.Fatal(err)
	}
	changeable := f.live()
	if err := changeable["force-after"]("3h"); err != nil { // before there is a member
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	member, err := cluster.Join(t.Context(), tenuretest.NewDatabase(), tenure.Config{Logger: quiet}, cluster.Config{Shutdown: f.config()})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.joined(member); err != nil {
		t.Fatal(err)
	}
	if err := changeable["force-after"](""); err != nil || f.config().ForceAfter != 0 {
		t.Errorf("the default: %v, %+v", err, f.config())
	}
	if err := changeable["drain-timeout"]("soon"); err == nil {
		t.Error("what is no time is accepted")
	}
	if err := changeable["drain-timeout"]("1ms"); err != nil {
		t.Fatal(err)
	}
	if _, ok := member.InFlight().Enter(); !ok {
		t.Fatal("the member takes no work")
	}
	if err := member.Shutdown(t.Context()); !errors.Is(err, tenure.ErrWorkRunning) || !strings.Contains(err.Error(), "after 1ms") {
		t.Errorf("%v; want that work still runs after 1ms", err)
	}
}
