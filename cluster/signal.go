package cluster

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// ShutdownOnSignal waits for the first of the signals, by default SIGTERM and
// SIGINT, for the end of the context, or for a shutdown that began elsewhere.
// Then it performs [Member.Shutdown] and returns its error. A signal during the
// shutdown forces it. It is the last call of a program's main function: what the
// program runs besides should end when [Member.Stopping] is closed and its work
// has ended.
func (m *Member) ShutdownOnSignal(ctx context.Context, signals ...os.Signal) error {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGTERM, os.Interrupt}
	}
	received := make(chan os.Signal, 2)
	signal.Notify(received, signals...)
	defer signal.Stop(received)
	log := m.node.Logger()
	log.Info("in service until a signal", "signals", signals)
	select {
	case sig := <-received:
		log.Info("shutting down; another signal forces it", "signal", sig)
	case <-ctx.Done():
		log.Info("shutting down; a signal forces it", "cause", context.Cause(ctx))
	case <-m.Stopping():
	}

	polite, force := context.WithCancelCause(context.WithoutCancel(ctx))
	defer force(nil)
	finished, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case sig := <-received:
			log.Warn("forcing the shutdown", "signal", sig)
			force(fmt.Errorf("forced by the signal %q", sig))
		case <-finished:
		}
	}()
	err := m.Shutdown(polite)
	close(finished)
	<-watched
	return err
}
