// Package cli implements the program tenure: it composes the commands of the packages
// below it.
//
// A command belongs to a family: run, cron, cluster, roles, work, serve, alerts, database
// or demo. Families do not import one another. They share these packages:
//
//   - console: exit codes, printing, confirmations
//   - flagvalue: values of flags
//   - settings: the configuration file and the environment
//   - connect: the database
//   - service: a node running until a signal
//   - lead: a node to lead roles and run commands
package cli

import (
	"context"
	"os"
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/guardian"
	"github.com/exactly-one/tenure/internal/program/service"
)

// Main runs the program with the arguments of the process and returns its exit
// code.
func Main() int {
	if len(os.Args) > 1 && os.Args[1] == guardian.CommandName {
		defer time.AfterFunc(service.AtRest, service.ReturnMemory).Stop()
		return guardian.Main(os.Args[1:], os.Stderr)
	}
	if os.Getpid() == 1 { // as in a container, whose orphans become children of its first process
		go guardian.ReapOrphans(context.Background()) // exits with this process
	}
	ctx, cancel := console.UntilSignal()
	defer cancel()
	root := newRoot()
	root.SetArgs(os.Args[1:])
	root.SetIn(os.Stdin)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	return console.Report(root.ErrOrStderr(), root.ExecuteContext(ctx))
}
