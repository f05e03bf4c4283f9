package mariatest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/exactly-one/tenure/internal/testkit"
)

// awaitStopped waits until a signal to stop has reached all threads of a process:
// until then one may still answer. It returns immediately on systems without /proc.
func awaitStopped(pid int) error {
	return testkit.Until(context.Background(), timeout, time.Millisecond, func() error {
		running, err := runningThread(pid)
		if err == nil && running != "" {
			err = fmt.Errorf("the thread %s has not stopped", running)
		}
		return err
	})
}

// runningThread returns a thread that is not stopped, if there is one.
func runningThread(pid int) (string, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // it has ended
		}
		if err != nil {
			return "", err
		}
		// The state follows the name in parentheses, which may hold anything.
		_, state, found := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
		if !found || len(state) == 0 || state[0] != 'T' && state[0] != 't' {
			return filepath.Dir(file), nil
		}
	}
	return "", nil
}
