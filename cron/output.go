package cron

import (
	"io"
	"sync"
	"unicode/utf8"

	"github.com/exactly-one/tenure/internal/printable"
)

// maxOutput is the maximum length of the stored output of a run, in bytes.
const maxOutput = 64 << 10

// cutMark begins an output without its first part.
const cutMark = "…"

// Output returns a writer for the output of the job. Its last 64 KiB are stored with the
// run when the attempt has ended, in place of an earlier attempt's; invalid UTF-8 and NUL
// are replaced. Without a recorded end of the attempt, its output is lost. The writer
// never fails and is safe for concurrent use.
func (r Run) Output() io.Writer {
	if r.output == nil {
		return io.Discard
	}
	return r.output
}

// output keeps the end of the written bytes.
type output struct {
	mu   sync.Mutex
	kept []byte // the last maxOutput bytes, or up to twice as many
	cut  bool   // there was more
}

// Write implements io.Writer.
func (o *output) Write(words []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(words)
	if n > maxOutput {
		words, o.kept, o.cut = words[n-maxOutput:], o.kept[:0], true
	}
	if len(o.kept)+len(words) > 2*maxOutput {
		o.kept, o.cut = append(o.kept[:0], o.kept[len(o.kept)-maxOutput:]...), true
	}
	o.kept = append(o.kept, words...)
	return n, nil
}

// text returns the kept bytes as valid text for PostgreSQL.
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, cut := o.kept, o.cut
	if excess := len(last) - maxOutput; excess > 0 {
		last, cut = last[excess:], true
	}
	text := printable.Stored(string(last)) // replacements are longer than what they replace
	if !cut && len(text) <= maxOutput {
		return text
	}
	begin := max(0, len(text)+len(cutMark)-maxOutput)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	return cutMark + text[begin:]
}
