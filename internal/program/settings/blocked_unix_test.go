//go:build unix

package settings

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestBlockedFileDelaysNoEnd: a file that cannot be read to its end, such as a pipe without
// a writer, delays neither the end of a program that starts nor of one that rereads it.
func TestBlockedFileDelaysNoEnd(t *testing.T) { // not parallel: the signal reaches all that await it
	path := filepath.Join(t.TempDir(), "tenure.toml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	within := func(what string, f func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); f() }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("%s has not ended after 10s", what)
		}
		free, err := os.OpenFile(path, os.O_RDWR, 0) // ends a blocked open of the pipe
		if err != nil {
			t.Fatal(err)
		}
		_ = free.Close() // nothing was written
		<-done
	}

	signaled := errors.New("signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signaled)
	c := &Configuration{Path: path, command: "serve"}
	within("the start", func() {
		if err := c.Load(ctx); !errors.Is(err, signaled) || c.File != nil {
			t.Errorf("got error %v, want the signal", err)
		}
	})

	regular := filepath.Join(t.TempDir(), "tenure.toml")
	if err := os.WriteFile(regular, []byte("[node]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = &Configuration{Path: regular, command: "serve"}
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Path = path
	var log bytes.Buffer
	r := &Reloader{Flags: pflag.NewFlagSet("", pflag.ContinueOnError), Config: c, Log: slog.New(slog.NewTextHandler(&log, nil))}
	begun := make(chan struct{})
	stop := r.OnHangup(func(reload func()) { close(begun); reload() })
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-begun
	within("the end of a reload", stop)
	if log.Len() > 0 {
		t.Errorf("the log is %s", log.String())
	}
}
