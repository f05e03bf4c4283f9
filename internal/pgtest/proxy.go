package pgtest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// proxy is a program that takes connections in front of a server, until the end
// of the test.
type proxy struct {
	name    string
	program string
	box     *sandbox.Sandbox
	place   string
	port    int
}

// newProxy finds a program of a Debian package and makes a place for it.
func newProxy(t testing.TB, kind sandbox.Kind, name, program, debian string) *proxy {
	t.Helper()
	path := "/usr/sbin/" + program
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing; on Debian and Ubuntu run: apt-get install %s", name, debian)
		}
	}
	box, err := sandbox.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	place, placeErr := box.Place()
	port, portErr := sandbox.FreePort()
	if err := errors.Join(placeErr, portErr); err != nil {
		t.Fatal(err)
	}
	return &proxy{name: name, program: path, box: box, place: place, port: port}
}

// write writes a file that the program may read, and returns its path.
func (p *proxy) write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(p.place, name)
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), p.box.Own(path)); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p *proxy) log() string { return filepath.Join(p.place, "log") }

// launch starts the program. The caller ends it.
func (p *proxy) launch(t testing.TB, args ...string) *sandbox.Process {
	t.Helper()
	process, err := p.box.Launch(p.log(), p.program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return process
}

// through waits until the program serves, and returns a function that turns a
// connection string of the server into one that goes through the program.
func (p *proxy) through(t testing.TB, s *Server, process *sandbox.Process) func(dsn string) string {
	t.Helper()
	through := func(dsn string) string {
		address, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		address.Host = net.JoinHostPort(sandbox.Host, strconv.Itoa(p.port))
		return address.String()
	}
	if err := awaitAnswer(through(s.DSN()), process); err != nil {
		t.Fatalf("%s does not answer: %v\n%s", p.name, err, sandbox.LogTail(p.log()))
	}
	return through
}

// awaitAnswer waits until a connection succeeds or the process has ended.
func awaitAnswer(dsn string, process *sandbox.Process) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(timeout); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			err = conn.Close(ctx)
		}
		cancel()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-poll.C:
		case <-process.Done():
			return process.Failure()
		}
	}
}
