package notify

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Variables are the environment variables of a manager. Programs started by this one must
// not see them: they would report in its name.
var Variables = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}

// Environment returns the value of a variable and whether it is set; os.LookupEnv
// is the one of the process.
type Environment func(name string) (value string, set bool)

// The messages of systemd; see sd_notify(3).
const (
	ready     = "READY=1"
	reloading = "RELOADING=1"
	stopping  = "STOPPING=1"
	watchdog  = "WATCHDOG=1"
	status    = "STATUS="
)

// sendTimeout bounds a message. The manager's queue is full only if it hangs, and
// then nothing here may hang with it.
const sendTimeout = time.Second

// Socket is where the manager listens. It may be used concurrently. A nil Socket means
// that there is no manager.
type Socket struct {
	conn     *net.UnixConn
	watchdog time.Duration // the time to the next sign of life, set by the manager; 0: never
}

// Open opens the socket of the environment, nil if it names none.
func Open(env Environment) (*Socket, error) {
	path, _ := env("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	// The first character of the abstract namespace is @, for Go too.
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q: it must be the path of a Unix socket, or begin with @", path)
	}
	interval, err := watchdogInterval(env)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return &Socket{conn, interval}, nil
}

// Take is [Open] for the process itself. It takes the variables out of its environment,
// so no started program reports in its name.
func Take(lookup Environment, unset func(name string) error) (*Socket, error) {
	socket, err := Open(lookup)
	for _, name := range Variables {
		err = errors.Join(err, unset(name))
	}
	return socket, err
}

// watchdogInterval is how often the manager wants a sign of life of this process; 0 if
// never.
func watchdogInterval(env Environment) (time.Duration, error) {
	text, _ := env("WATCHDOG_USEC")
	if text == "" {
		return 0, nil
	}
	if pid, _ := env("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil // another process is meant
	}
	microseconds, err := strconv.ParseInt(text, 10, 64)
	const most = int64(24 * time.Hour / time.Microsecond)
	if err != nil || microseconds < 1 || microseconds > most {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q: it must be a number of microseconds, at most a day", text)
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}

// send sends one message.
func (s *Socket) send(lines ...string) error {
	if s == nil {
		return nil
	}
	err := s.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = s.conn.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}

// Status sends the manager a line for people, before the program is ready.
func (s *Socket) Status(text string) error { return s.send(statusLine(text)) }

// Close ends the use of a socket not taken over by a service. It is idempotent.
func (s *Socket) Close() error {
	if s == nil {
		return nil
	}
	if err := s.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
