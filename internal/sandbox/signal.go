package sandbox

import "os"

// Signal sends a signal to a process by its id. The error matches
// [os.ErrProcessDone] if there is no such process.
func Signal(pid int, signal os.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // only the handle goes
	return process.Signal(signal)
}
