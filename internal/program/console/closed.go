package console

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// SurviveClosedOutput makes writing to standard output or standard error return an error
// if the pipe has no reader. By default such a write ends the program with SIGPIPE, and
// its roles with it. Commands that this program starts keep the default.
var SurviveClosedOutput = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // signal.Ignore would also apply to commands
})
