package dialects

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// childAttributes kills a child when the test ends. With ownMounts, the child's mounts are
// invisible to other processes.
func childAttributes(ownMounts bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if ownMounts {
		attributes.Unshareflags = syscall.CLONE_NEWNS
	}
	return attributes
}

// mountDisk mounts a disk of a fixed size on a directory.
func mountDisk(directory string, size int) (unmount func() error, err error) {
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return nil, err
	}
	return func() error { return syscall.Unmount(directory, syscall.MNT_DETACH) }, nil
}

// mountFile makes a file available at the path of another one.
func mountFile(file, path string) error { return syscall.Mount(file, path, "", syscall.MS_BIND, "") }

// processTime returns the CPU time of this process.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
