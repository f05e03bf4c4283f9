package sidecar

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

func TestParseAddressRejectsInvalidAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		":8080": "127.0.0.1:8080", "127.0.0.1:0": "127.0.0.1:0", "0.0.0.0:8080": "0.0.0.0:8080", "[::]:1": "[::]:1",
		"localhost:65535": "localhost:65535", "[fe80::1%eth0]:80": "[fe80::1%eth0]:80", "api-1.internal:08080": "api-1.internal:8080",
	} {
		if got, err := ParseAddress(text); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "8080", "localhost", ":", "localhost:", ":65536", ":-1", ":+1", ":0x50", ":http", "a b:80", "http://localhost:80", "::1:80", "[::1]80", "\n:80",
		"user@host:80", "/tmp/socket:80",
	} {
		if got, err := ParseAddress(text); err == nil || !errors.Is(err, tenure.ErrInvalidConfig) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "host:1": false, "": false,
	} {
		if IsLoopback(address) != want {
			t.Errorf("%q: loopback is not %v", address, want)
		}
	}
}

// TestListenReportsCauseOnOneLine: what is in the way of listening is one clear line.
func TestListenReportsCauseOnOneLine(t *testing.T) {
	t.Parallel()
	taken, err := Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if !IsLoopback(taken.Addr().String()) {
		t.Errorf("a port alone is bound to %v", taken.Addr())
	}
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	for address, want := range map[string]string{
		":" + port:             "cannot listen on 127.0.0.1:" + port + ": the port is in use by another program",
		"192.0.2.1:80":         "this machine does not have that address",
		"none.invalid.:80":     "the host name cannot be resolved",
		"127.0.0.1:port":       `the port "port"`,
		"127.0.0.1:8080/path?": "is not a number",
	} {
		listener, err := Listen(t.Context(), address)
		if err == nil {
			_ = listener.Close() // the test has failed already
		}
		if err == nil || !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
