package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Supported returns nil where agents work.
func Supported() error { return nil }

// Now reads CLOCK_BOOTTIME.
func Now() Moment {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("agent: CLOCK_BOOTTIME: %v", err)) // every kernel since 2.6.39 has it
	}
	return Moment(t.Nano())
}

// CheckPeer returns an error unless the process at the other end runs as this
// process's user or as root.
func CheckPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failure error
	err = raw.Control(func(fd uintptr) {
		peer, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failure); err != nil {
		return fmt.Errorf("read the user of the peer: %w", err)
	}
	if uid := int(peer.Uid); uid != os.Geteuid() && uid != 0 {
		return fmt.Errorf("the peer runs as user %d; user %d or root is required", uid, os.Geteuid())
	}
	return nil
}

// WriteWith writes a message together with a duplicate of the descriptor of a connection.
// It does not change the blocking mode: all duplicates share it.
func WriteWith(conn *net.UnixConn, message any, lock syscall.RawConn) error {
	frame, err := encode(message)
	if err != nil {
		return err
	}
	var failure error
	sent := 0
	err = lock.Control(func(fd uintptr) {
		sent, _, failure = conn.WriteMsgUnix(frame, unix.UnixRights(int(fd)), nil)
	})
	if err := errors.Join(err, failure); err != nil {
		return err
	}
	_, err = conn.Write(frame[sent:])
	return err
}

// rightsReader reads from a connection and keeps the received descriptors.
type rightsReader struct {
	conn *net.UnixConn
	fds  []int
}

func (r *rightsReader) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	n, nOOB, _, _, err := r.conn.ReadMsgUnix(p, oob) // sets close-on-exec
	if err != nil {
		return n, err
	}
	if n == 0 && len(p) > 0 {
		return 0, net.ErrClosed
	}
	messages, err := unix.ParseSocketControlMessage(oob[:nOOB])
	for _, m := range messages {
		fds, rightsErr := unix.ParseUnixRights(&m)
		r.fds = append(r.fds, fds...)
		err = errors.Join(err, rightsErr)
	}
	return n, err
}

// ReadWith reads a message and its descriptor. release closes the descriptor; it is never
// nil.
func ReadWith(conn *net.UnixConn, target any) (release func(), err error) {
	r := &rightsReader{conn: conn}
	err = Read(r, target)
	return func() {
		for _, fd := range r.fds {
			_ = unix.Close(fd)
		}
		r.fds = nil
	}, err
}
