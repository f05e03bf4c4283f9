package sidecar

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
)

// TestFeedBounds: the feed forgets the oldest events beyond a number and a size,
// and counts right what it keeps.
func TestFeedBounds(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"number": 10, "size": 10_000} {
		f := newFeed()
		for range 5 * maxRetained {
			if err := f.publish("x", strings.Repeat("x", size)); err != nil {
				t.Fatal(err)
			}
			total, count := 0, 0
			for _, frame := range f.frames {
				total += len(frame)
				if frame != nil {
					count++
				}
			}
			if total != f.bytes || total > maxRetainedBytes || uint64(count) != f.next-f.oldest {
				t.Fatalf("%s: %d events of %d bytes are kept; the feed says %d of %d", name, count, total, f.next-f.oldest, f.bytes)
			}
		}
		if begin := f.join(&position{f.name, f.oldest - 2}); begin.missed == nil || *begin.missed != 1 || begin.at.number != f.oldest-1 {
			t.Errorf("who missed one event begins at %+v", begin)
		}
		if begin := f.join(&position{f.name, f.oldest - 1}); begin.gap || begin.at.number != f.oldest-1 {
			t.Errorf("who missed none begins at %+v", begin)
		}
		if size == 10 && f.next-f.oldest != maxRetained {
			t.Errorf("only %d events are kept", f.next-f.oldest)
		}
	}
	f := newFeed()
	for range 3 { // each alone is larger than all may be together
		if err := f.publish("x", strings.Repeat("x", 2*maxRetainedBytes)); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.after(2); len(got.frames) != 1 || f.next-f.oldest != 1 {
		t.Errorf("the last event is not kept: %d", f.next-f.oldest)
	}
	f.close()
	f.close()
	if err := f.publish("x", 1); err != nil || f.next != 4 || !f.after(3).ended || f.after(2).ended {
		t.Error("a closed feed goes on, or ends before its last event")
	}
	if err := f.publish("x", func() {}); err == nil {
		t.Error("what cannot be encoded was published")
	}
}

// TestShortenedErrors: an error of any length takes a bounded place in the feed,
// and stays text.
func TestShortenedErrors(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{})
	for _, text := range []string{strings.Repeat("é", 1<<20), strings.Repeat("a\n\x00", 1<<20)} {
		h.Publish(record.Event{Error: text})
	}
	for _, frame := range h.feed.after(0).frames {
		if len(frame) > 10*maxErrorText || strings.Contains(string(frame), `\ufffd`) || strings.Count(string(frame), "\n") != 4 {
			t.Errorf("%d bytes: %.200s", len(frame), frame)
		}
	}
}
