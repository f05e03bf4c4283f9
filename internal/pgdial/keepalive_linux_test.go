package pgdial

import (
	"net"
	"syscall"
	"testing"
)

// The socket of a connection has what the string says.
func TestKeepaliveParametersReachTheSocket(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, test := range []struct {
		parameters string
		want       map[[2]int]int // by level and option
	}{
		{"keepalives_idle=33 keepalives_interval=7 keepalives_count=4 tcp_user_timeout=12345", map[[2]int]int{
			{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}: 1, {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE}: 33,
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL}: 7, {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT}: 4,
			{syscall.IPPROTO_TCP, tcpUserTimeout}: 12345,
		}},
		{"keepalives=0", map[[2]int]int{{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}: 0, {syscall.IPPROTO_TCP, tcpUserTimeout}: 0}},
		{"keepalives=1 connect_timeout=5", map[[2]int]int{{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}: 1}},
	} {
		config, err := ParseConfig("host=127.0.0.1 user=app " + test.parameters)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := config.DialFunc(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Control(func(socket uintptr) {
			for option, want := range test.want {
				got, err := syscall.GetsockoptInt(int(socket), option[0], option[1])
				if err != nil || got != want {
					t.Errorf("%s: option %v is %d (%v), want %d", test.parameters, option, got, err, want)
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}
