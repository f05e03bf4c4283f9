package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FakeClock sets the clock of a server while it runs, with libfaketime: only the
// wall clock, since durations must stay true.
type FakeClock struct{ library, file string }

// FindFakeClock returns nil where libfaketime is not installed. The clock is a file
// in a directory, or among temporary files if that is empty.
func FindFakeClock(directory string) (*FakeClock, error) {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1") // the pattern is well-formed
	if len(found) == 0 {
		return nil, nil
	}
	file, err := os.CreateTemp(directory, "tenure-clock-")
	if err != nil {
		return nil, err
	}
	c := &FakeClock{found[0], file.Name()}
	return c, errors.Join(file.Close(), os.Chmod(c.file, 0o644), c.Set(0)) //nolint:gosec // the server reads it
}

// FakeClockDelay is how long a process of the server may use what it has read from the file:
// seconds are compared.
const FakeClockDelay = 2 * time.Second

// Environment makes a server read its clock from the file. No process reads the file at
// each look at the clock: the server also looks in signal handlers, and opening a file
// there while the process allocates memory destroys that memory. The times of files stay
// true: to fake them, all processes share a lock, which a killed process keeps forever.
func (c *FakeClock) Environment() []string {
	return []string{
		"LD_PRELOAD=" + c.library, "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1",
	}
}

// Set makes the clock differ from the machine's, FakeClockDelay later.
func (c *FakeClock) Set(offset time.Duration) error {
	text := fmt.Sprintf("%+.3fs\n", offset.Seconds())
	next := c.file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil { //nolint:gosec // the server reads it
		return err
	}
	return os.Rename(next, c.file) // the server reads it at any time
}

// Close removes the file. The server must have ended.
func (c *FakeClock) Close() error {
	if c == nil {
		return nil
	}
	return os.Remove(c.file)
}
