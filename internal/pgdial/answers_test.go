package pgdial

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// fake is one message of a server: its type and the length of its body.
type fake struct {
	kind byte
	size int
}

// TestAnswersAreBounded: what no answer has is refused before it needs memory.
func TestAnswersAreBounded(t *testing.T) {
	const (
		start   = "\x00\x00\x00\x08\x00\x03\x00\x00"
		query   = "Q\x00\x00\x00\x05\x00"
		prepare = "P\x00\x00\x00\x04D\x00\x00\x00\x04S\x00\x00\x00\x04"
		execute = "B\x00\x00\x00\x04D\x00\x00\x00\x04E\x00\x00\x00\x04S\x00\x00\x00\x04"
	)
	greeting := []fake{{'R', 4}, {'S', 20}, {'K', 8}, {'Z', 1}}
	rows := func(n, size int) []fake {
		all := append(slices.Clone(greeting), fake{'2', 0}, fake{'T', 40})
		for range n {
			all = append(all, fake{'D', size})
		}
		return append(all, fake{'C', 9}, fake{'Z', 1})
	}
	after := func(messages ...fake) []fake { return append(slices.Clone(greeting), messages...) }
	many := func(kind byte, n int) []fake { return slices.Repeat([]fake{{kind, 20}}, n) }
	for name, test := range map[string]struct {
		asked    string // after the start
		messages []fake
		want     string
	}{
		"10,000 roles":                     {execute, rows(10_000, 300), ""},
		"a statement that is prepared":     {prepare, after(fake{'1', 0}, fake{'t', 10}, fake{'T', 40}, fake{'Z', 1}), ""},
		"two answers to one message":       {execute + execute, append(rows(1, 9), fake{'2', 0}, fake{'C', 9}, fake{'Z', 1}), ""},
		"an error":                         {execute, after(fake{'E', 500}, fake{'Z', 1}), ""},
		"an empty query":                   {query, after(fake{'I', 0}, fake{'Z', 1}), ""},
		"notifications at rest":            {"", append(slices.Clone(greeting), many('A', 200_000)...), ""},
		"the end of the session":           {"", after(fake{'E', 100}), ""},
		"a value of 9 MB":                  {execute, rows(1, 9<<20), "at most 8388608 are read"},
		"an error of 65 kB":                {execute, after(fake{'E', 65 << 10}), "at most 65536 are read"},
		"a notice of 65 kB":                {execute, after(fake{'N', 65 << 10}), "at most 65536 are read"},
		"10,000 columns":                   {execute, after(fake{'T', 200_000}), "at most 65536 are read"},
		"a message without a length":       {execute, after(fake{'D', -1}), "without a length"},
		"rows without end":                 {execute, rows(100_000, 10), "does not end: more than 24 MB"},
		"warnings without end":             {execute, append(slices.Clone(greeting), many('N', 100_000)...), "does not end: more than 24 MB"},
		"parameters without end":           {"", append(slices.Clone(greeting), many('S', 5_000)...), "more than 1024 kB"},
		"rows that nothing asked for":      {"", after(fake{'D', 10}), `type 'D' that nothing had asked for`},
		"a result that nothing asked for":  {"", after(fake{'C', 10}), `type 'C' that nothing had asked for`},
		"a second end":                     {query, after(fake{'C', 9}, fake{'Z', 1}, fake{'Z', 1}), "ended an answer that nothing had asked for"},
		"an end without a result":          {query, after(fake{'T', 40}, fake{'Z', 1}), "ended an answer without a result"},
		"an end of a statement without it": {execute, after(fake{'2', 0}, fake{'Z', 1}), "ended an answer without a result"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stream []byte
			for _, m := range test.messages {
				stream = binary.BigEndian.AppendUint32(append(stream, m.kind), uint32(m.size+4))
				stream = append(stream, make([]byte, max(m.size, 0))...)
			}
			for way, from := range map[string]io.Reader{"in blocks": bytes.NewReader(stream), "in small pieces": iotest.HalfReader(bytes.NewReader(stream))} {
				a := newAnswers(from, io.Discard, Session)
				for _, written := range []string{start, test.asked} {
					if _, err := (questions{a}).Write([]byte(written)); err != nil {
						t.Fatal(err)
					}
				}
				n, err := io.Copy(io.Discard, struct{ io.Reader }{a})
				switch {
				case test.want == "" && (err != nil || n != int64(len(stream))):
					t.Errorf("%s: an honest answer of %d bytes ended after %d: %v", way, len(stream), n, err)
				case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("%s: a hostile answer was read: %v; want an error with %q", way, err, test.want)
				}
			}
		})
	}
}

// A question renews what its answer may have, but not what is kept for as long as the
// connection lives.
func TestEachAnswerHasItsOwnBound(t *testing.T) {
	t.Parallel()
	a := newAnswers(strings.NewReader(""), io.Discard, Session)
	a.ask([]byte("start"))
	if err := a.begin('Z', 5); err != nil {
		t.Fatal(err)
	}
	query := []byte("Q\x00\x00\x00\x05\x00")
	for range 20 {
		a.ask(query)
		for range 2 {
			if err := a.begin('D', 8<<20); err != nil {
				t.Fatalf("an honest answer: %v", err)
			}
			a.body = 0
		}
		for _, kind := range []byte("CZ") {
			if err := a.begin(kind, 5); err != nil {
				t.Fatalf("an honest answer: %v", err)
			}
			a.body = 0
		}
	}
	var err error
	for range 5000 {
		a.ask(query)
		for _, kind := range []byte("SCZ") {
			if err == nil {
				err = a.begin(kind, 40)
				a.body = 0
			}
		}
	}
	if err == nil || !strings.Contains(err.Error(), "more than 1024 kB") {
		t.Errorf("a hostile answer was read: 5,000 changes of parameters: %v", err)
	}
}
