package tail

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
