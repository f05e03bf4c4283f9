//go:build !linux

package wire

import (
	"fmt"
	"net"
	"syscall"

	"github.com/exactly-one/tenure"
)

// Supported returns nil where agents work.
func Supported() error {
	return fmt.Errorf("%w: agents need Linux; connect to the database instead", tenure.ErrUnsupported)
}

// Now is not used: see Supported.
func Now() Moment { return 0 }

// CheckPeer fails: see Supported.
func CheckPeer(*net.UnixConn) error { return Supported() }

// WriteWith fails: see Supported.
func WriteWith(*net.UnixConn, any, syscall.RawConn) error { return Supported() }

// ReadWith fails: see Supported.
func ReadWith(*net.UnixConn, any) (release func(), err error) { return func() {}, Supported() }
