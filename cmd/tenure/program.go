package main

import (
	"os"
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none

	"github.com/exactly-one/tenure/cmd/tenure/internal/guardian"
)

func realMain() int {
	if len(os.Args) > 1 && os.Args[1] == guardian.CommandName {
		defer time.AfterFunc(atRest, returnMemory).Stop()
		return guardian.Main(os.Args[1:], os.Stderr)
	}
	ctx, cancel := untilSignal()
	defer cancel()
	root := newRoot()
	root.SetArgs(os.Args[1:])
	root.SetIn(os.Stdin)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	return report(root.ErrOrStderr(), root.ExecuteContext(ctx))
}
