package children

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// EndsWithParent are the attributes of a process that does not outlive this one, where the
// system can do that.
func EndsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// awaitStop waits until all threads of a child have stopped.
func awaitStop(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
