// Package program composes the commands of the program tenure-server.
package program

import (
	"context"
	"os"
	"path/filepath"
	_ "time/tzdata" // times are shown in time zones also where the machine knows none

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/guardian"
	"github.com/exactly-one/tenure/internal/program/tree"
	"github.com/exactly-one/tenure/server/internal/alertcommand"
	"github.com/exactly-one/tenure/server/internal/alerts"
	"github.com/exactly-one/tenure/server/internal/serve"
)

// The names of the program. The commands serve and alerts of the program tenure become
// this program, and keep the name.
const (
	name   = "tenure-server"
	caller = "tenure"
)

const long = `The server of Tenure: the dashboard, the HTTP API, alerts and their notifiers, and the
retention of what the cluster records. "tenure serve" and "tenure alerts" are commands of
this program, which tenure finds in its own folder or in the PATH.`

// Main runs the program with the arguments of the process and returns its exit code.
func Main() int {
	config.Speak(alerts.Language{})
	called := name
	if filepath.Base(os.Args[0]) == caller {
		called = caller
	}
	if os.Getpid() == 1 { // as in a container, whose orphans become children of its first process
		go guardian.ReapOrphans(context.Background()) // exits with this process
	}
	ctx, cancel := console.UntilSignal()
	defer cancel()
	root := newRoot(called)
	root.SetArgs(os.Args[1:])
	root.SetIn(os.Stdin)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	return console.Report(root.ErrOrStderr(), root.ExecuteContext(ctx))
}

// newRoot builds the program's tree of commands.
func newRoot(called string) *cobra.Command {
	out := &console.Output{Format: console.FormatText, Color: console.ColorAuto}
	root := tree.New(called, "The dashboard, alerts and records of a cluster", long, out)
	root.AddCommand(serve.New(out), alertcommand.New(out), tree.NewConfig(out), tree.NewVersion(out), tree.NewManual(root), tree.NewListing(root))
	tree.Complete(root, nil)
	return root
}
