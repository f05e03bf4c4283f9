package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// An interrupt while a test uses a server leaves neither the server nor a file.
func TestInterruptLeavesNoServerAndNoFile(t *testing.T) {
	pgtest.Long(t)
	t.Chdir("../..")
	r, err := newRunner()
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.run(ctx, suite{module: ".", folder: "internal/pgtest", run: "^TestRestartKeepsPortAndData$"}, nil)
		ended <- err
	}()
	err = children.Until(t.Context(), 2*time.Minute, time.Millisecond, func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the suite ended before the interrupt: %v", err)
		default:
		}
		if files, _ := filepath.Glob(filepath.Join(r.temporary, "*", "*", "*", "PG_VERSION")); len(files) > 0 && len(within(t, r.temporary)) > 0 {
			return nil
		}
		return errors.New("no server has started")
	})
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the suite ended with %v", err)
	}
	if failed := errors.Join(err, r.close()); failed != nil {
		t.Error(failed)
	}
	err = children.Until(t.Context(), cleanUp, 10*time.Millisecond, func() error { // a killed process ends when it is scheduled
		if left := within(t, r.temporary); len(left) > 0 {
			return fmt.Errorf("processes still run: %q", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(r.scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", r.scratch, err)
	}
}

// within lists the command lines of the processes that name a directory.
func within(t *testing.T, directory string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		line, _ := os.ReadFile(file) // the process may have ended
		if strings.Contains(string(line), directory) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
