package tail

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTailKeepsLastWholeLines: everything is handed on, and the last whole lines are kept.
func TestTailKeepsLastWholeLines(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	for written, want := range map[string]string{
		"":                                "",
		"oh no\n":                         "oh no",
		"one\ntwo\n\n":                    "one\ntwo",
		"no end":                          "no end",
		strings.Repeat("x", 25):           strings.Repeat("x", 20),
		strings.Repeat("x", 25) + "\n":    strings.Repeat("x", 19),
		long.String():                     "line 4999",
		strings.Repeat("y", 70) + "\nz\n": "z",
	} {
		var next strings.Builder
		tail, err := Start(&next, 20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tail.File().WriteString(written); err != nil {
			t.Fatal(err)
		}
		if got, err := tail.Close(); got != want || err != nil {
			t.Errorf("%.30q: kept %q, %v; want %q", written, got, err, want)
		}
		if next.String() != written {
			t.Errorf("%.30q: handed on %.30q", written, next.String())
		}
	}
}

// deaf refuses every word.
type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("deaf") }

// TestFailingReceiverDoesNotStopWriter: a failing receiver does not affect the writer.
func TestFailingReceiverDoesNotStopWriter(t *testing.T) {
	t.Parallel()
	tail, err := Start(deaf{}, 20)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := tail.File().WriteString(strings.Repeat("word ", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := tail.Close(); !strings.HasSuffix(got, "word word") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// stalled takes nothing until it is released.
type stalled struct{ asked, released chan struct{} }

func (s stalled) Write(words []byte) (int, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-s.released
	return len(words), nil
}

// TestStalledReceiverDoesNotDelayClose: a receiver that takes nothing, such as a pipe that no process reads,
// does not keep a command's run open after the command has ended.
func TestStalledReceiverDoesNotDelayClose(t *testing.T) {
	t.Parallel()
	next := stalled{make(chan struct{}, 1), make(chan struct{})}
	defer close(next.released)
	tail, err := Start(next, 20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tail.File().WriteString("oh no\n"); err != nil {
		t.Fatal(err)
	}
	<-next.asked
	type result struct {
		kept string
		err  error
	}
	closed := make(chan result, 1)
	go func() {
		kept, err := tail.Close()
		closed <- result{kept, err}
	}()
	select {
	case got := <-closed:
		if got.kept != "oh no" || !errors.Is(got.err, os.ErrDeadlineExceeded) {
			t.Errorf("kept %q, %v", got.kept, got.err)
		}
	case <-time.After(20 * time.Second):
		t.Error("Close waits for a receiver that takes nothing")
	}
}
