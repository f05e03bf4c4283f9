package mariatest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// awaitStopped waits until a signal to stop has reached all threads of a process:
// until then one may still answer. It returns immediately on systems without /proc.
func awaitStopped(pid int) error {
	const every = time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for deadline := time.Now().Add(timeout); ; <-ticker.C {
		running, err := runningThread(pid)
		if err != nil || running == "" {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the thread %s has not stopped within %v", running, timeout)
		}
	}
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
