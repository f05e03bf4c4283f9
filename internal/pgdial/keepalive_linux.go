package pgdial

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT, not named in package syscall.
const tcpUserTimeout = 0x12

func setUserTimeout(socket uintptr, milliseconds int) error {
	return syscall.SetsockoptInt(int(socket), syscall.IPPROTO_TCP, tcpUserTimeout, milliseconds)
}
