//go:build unix

package examples

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
)

const sidecarToken = "0123456789abcdef-token"

// sidecarFaults is how often each fault happens.
const sidecarFaults = 50

// TestSidecarExampleNeverOverlaps runs two copies of the example beside their nodes. In the
// middle of a piece of work, the node of the leader steps down, hands over, stops, is
// killed or freezes. No piece of work begins before that of the other copy has ended.
func TestSidecarExampleNeverOverlaps(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	program := filepath.Join(t.TempDir(), "tenure")
	if output, err := exec.Command("go", "build", "-o", program, "../cmd/tenure").CombinedOutput(); err != nil {
		t.Fatalf("build tenure: %v\n%s", err, output)
	}
	for _, fault := range []struct {
		name   string
		strike func(t *testing.T, leader, other *sidecarCopy)
		mend   func(t *testing.T, leader *sidecarCopy)
	}{
		{"step-downs", func(t *testing.T, leader, _ *sidecarCopy) { leader.stepDown(t, "{}") }, nil},
		{"hand-overs", func(t *testing.T, leader, other *sidecarCopy) { leader.stepDown(t, `{"to":"`+other.name+`"}`) }, nil},
		{"stops", signal(syscall.SIGTERM), restart},
		{"kills", signal(syscall.SIGKILL), restart},
		{"freezes", signal(syscall.SIGSTOP), func(t *testing.T, leader *sidecarCopy) { leader.signal(t, syscall.SIGCONT) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			dsn, port := pgtest.Shared(t).Database(t), freePorts(t, 2)
			copies := [2]*sidecarCopy{startCopy(t, program, dsn, "copy-0", port), startCopy(t, program, dsn, "copy-1", port+1)}
			copies[0].awaitReady(t)
			copies[1].awaitReady(t)
			var struck []time.Time
			for range sidecarFaults {
				leader := awaitPiece(t, copies[0], copies[1])
				other := copies[0]
				if leader == other {
					other = copies[1]
				}
				struck = append(struck, time.Now())
				fault.strike(t, leader, other)
				if awaitPiece(t, other) != other {
					t.Fatal("the other copy does not work")
				}
				if fault.mend != nil {
					fault.mend(t, leader)
				}
				leader.awaitReady(t)
			}
			checkPieces(t, struck, copies[0].end(t), copies[1].end(t))
		})
	}
}

// checkPieces fails the test if pieces of work of the two copies overlap, or if most faults
// came between two pieces.
func checkPieces(t *testing.T, struck []time.Time, one, other []children.Interval) {
	t.Helper()
	hit := 0
	for _, at := range struck {
		for _, piece := range append(one[:len(one):len(one)], other...) {
			if at.After(piece.From) && at.Before(piece.To) {
				hit++
			}
		}
	}
	t.Logf("%d and %d pieces of work, %d of %d faults in the middle of one", len(one), len(other), hit, len(struck))
	if hit < len(struck)/2 {
		t.Errorf("%d of %d faults came in the middle of a piece of work, want at least half", hit, len(struck))
	}
	if overlaps := children.Overlaps(one, other); len(overlaps) > 0 {
		t.Errorf("%d pieces of work of two copies overlap, want 0: %v", len(overlaps), overlaps)
	}
}

// sidecarCopy is a copy of the example with its node.
type sidecarCopy struct {
	name, url string
	start     func() *exec.Cmd // starts the node
	node      *exec.Cmd
	program   *exec.Cmd
	begun     chan struct{} // a piece of work has begun; keeps one
	read      chan struct{} // closed when the program's output has ended

	mu     sync.Mutex
	pieces []children.Interval
}

func startCopy(t *testing.T, program, dsn, name string, port int) *sidecarCopy {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(sidecarToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &sidecarCopy{name: name, url: "http://127.0.0.1:" + strconv.Itoa(port), begun: make(chan struct{}, 1), read: make(chan struct{})}
	c.start = func() *exec.Cmd {
		node := exec.CommandContext(t.Context(), program, "run", "--role", "billing", "--name", name, "--listen", ":"+strconv.Itoa(port),
			"--token-file", token, "--lease", "2s", "--settle", "1s", "--check-interval", "500ms")
		node.Env = append(os.Environ(), "TENURE_DSN="+dsn)
		node.Stderr = t.Output()
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		return node
	}
	c.node = c.start()
	c.program = exec.CommandContext(t.Context(), "python3", "sidecar/billing.py", c.url, token, "0.8")
	output, err := c.program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.program.Stderr = t.Output()
	if err := c.program.Start(); err != nil {
		t.Fatal(err)
	}
	go c.readPieces(t, output) // exits when the program has ended; end waits for it
	t.Cleanup(func() {
		_ = c.node.Process.Kill() // it may have ended
		_ = c.node.Wait()
		_ = c.program.Process.Kill() // it may have ended
		<-c.read
		_ = c.program.Wait() // as killed
	})
	return c
}

// readPieces reads when pieces of work begin and end.
func (c *sidecarCopy) readPieces(t *testing.T, output io.Reader) {
	defer close(c.read)
	var begun time.Time
	for lines := bufio.NewScanner(output); lines.Scan(); {
		stamp, text, _ := strings.Cut(lines.Text(), " ")
		seconds, err := strconv.ParseFloat(stamp, 64)
		if err != nil {
			t.Errorf("%s printed %q, want a time first", c.name, lines.Text())
			return
		}
		at := time.UnixMicro(int64(seconds * 1e6))
		switch {
		case strings.HasPrefix(text, "invoice begun"):
			begun = at
			select {
			case c.begun <- struct{}{}:
			default:
			}
		case strings.HasPrefix(text, "invoice"):
			c.mu.Lock()
			c.pieces = append(c.pieces, children.Interval{From: begun, To: at})
			c.mu.Unlock()
			begun = time.Time{}
		default:
			t.Errorf("%s printed %q", c.name, text)
		}
	}
	if !begun.IsZero() { // until the program was killed
		c.mu.Lock()
		c.pieces = append(c.pieces, children.Interval{From: begun, To: time.Now()})
		c.mu.Unlock()
	}
}

// end ends the program and returns its pieces of work.
func (c *sidecarCopy) end(t *testing.T) []children.Interval {
	t.Helper()
	if err := c.program.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-c.read
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pieces
}

// awaitPiece waits until one of the copies begins a piece of work, and returns it.
func awaitPiece(t *testing.T, copies ...*sidecarCopy) *sidecarCopy {
	t.Helper()
	for _, c := range copies {
		select {
		case <-c.begun: // of an earlier piece
		default:
		}
	}
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	var second <-chan struct{}
	if len(copies) > 1 {
		second = copies[1].begun
	}
	select {
	case <-copies[0].begun:
		return copies[0]
	case <-second:
		return copies[1]
	case <-limit.C:
		t.Fatal("no copy works")
		return nil
	}
}

// signal returns a function that sends a signal to the leader's node.
func signal(s syscall.Signal) func(t *testing.T, leader, other *sidecarCopy) {
	return func(t *testing.T, leader, _ *sidecarCopy) {
		t.Helper()
		leader.signal(t, s)
	}
}

func (c *sidecarCopy) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.node.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// restart starts the node again after its process has ended.
func restart(t *testing.T, c *sidecarCopy) {
	t.Helper()
	_ = c.node.Wait() // killed, or 0
	c.node = c.start()
}

// awaitReady waits until the node is a candidate.
func (c *sidecarCopy) awaitReady(t *testing.T) {
	t.Helper()
	err := children.Until(t.Context(), 2*time.Minute, 20*time.Millisecond, func() error {
		return request(t.Context(), http.MethodGet, c.url+"/readyz", "")
	})
	if err != nil {
		t.Fatalf("%s is not ready: %v", c.name, err)
	}
}

// stepDown asks the node to give up the role.
func (c *sidecarCopy) stepDown(t *testing.T, body string) {
	t.Helper()
	if err := request(t.Context(), http.MethodPost, c.url+"/v1/elections/billing/step-down", body); err != nil {
		t.Errorf("step-down of %s: %v", c.name, err)
	}
}

// request sends a request and returns an error unless the answer is 200.
func request(ctx context.Context, method, url, body string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+sidecarToken)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s: %s", response.Status, text))
	}
	return err
}
