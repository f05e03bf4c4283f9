//go:build !linux

package dialects

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

func childAttributes(bool) *syscall.SysProcAttr { return nil }

func mountDisk(string, int) (unmount func() error, err error) {
	return nil, errors.ErrUnsupported
}

func mountFile(string, string) error { return errors.ErrUnsupported }

func processTime(b *testing.B) time.Duration {
	b.Helper()
	b.Fatal(errors.ErrUnsupported)
	return 0
}
