package cluster

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// ShutdownOnSignal waits for the first of the signals (default: SIGTERM and SIGINT), for
// the end of ctx, or for a shutdown begun elsewhere. Then it calls [Member.Shutdown] and
// returns its error. A signal during the shutdown forces it. Call it last in the main
// function. Other parts of the program should end when the channel of [Member.Stopping] is
// closed and their work has ended.
func (m *Member) ShutdownOnSignal(ctx context.Context, signals ...os.Signal) error {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGTERM, os.Interrupt}
	}
	received := make(chan os.Signal, 2)
	signal.Notify(received, signals...)
	defer signal.Stop(received)
	log := m.node.Logger()
	log.Info("running until a signal", "signals", signals)
	select {
	case sig := <-received:
		log.Info("shutting down; another signal forces it", "signal", sig)
	case <-ctx.Done():
		log.Info("shutting down; a signal forces it", "cause", context.Cause(ctx))
	case <-m.Stopping():
	}

	graceful, force := context.WithCancelCause(context.WithoutCancel(ctx))
	defer force(nil)
	finished, watched := make(chan struct{}), make(chan struct{})
	go func() { // exits with a signal or finished; this function waits for it
		defer close(watched)
		select {
		case sig := <-received:
			log.Warn("forcing the shutdown", "signal", sig)
			force(fmt.Errorf("forced by the signal %q", sig))
		case <-finished:
		}
	}()
	err := m.Shutdown(graceful)
	close(finished)
	<-watched
	return err
}
