package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

// isolateIPC lets System V shared memory and semaphores of a command end with it,
// which takes root.
func isolateIPC(command *exec.Cmd) {
	if os.Geteuid() == 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWIPC
	}
}
