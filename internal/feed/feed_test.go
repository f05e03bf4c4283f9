package feed

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const maxBytes = 1 << 20

func TestFeedForgetsTheOldestEvents(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"number": 10, "size": 10_000} {
		f := New(maxBytes)
		for range 5 * MaxRetained {
			if err := f.Publish("x", strings.Repeat("x", size)); err != nil {
				t.Fatal(err)
			}
			total, count := 0, 0
			for _, frame := range f.frames {
				total += len(frame)
				if frame != nil {
					count++
				}
			}
			if total != f.bytes || total > maxBytes || uint64(count) != f.next-f.oldest {
				t.Fatalf("%s: %d events of %d bytes are kept; the feed says %d of %d", name, count, total, f.next-f.oldest, f.bytes)
			}
		}
		if begin, err := f.Join(f.Position(f.oldest - 2).String()); err != nil || begin.Missed == nil || *begin.Missed != 1 || begin.At.number != f.oldest-1 {
			t.Errorf("a client that missed one event begins at %+v, %v", begin, err)
		}
		if begin, err := f.Join(f.Position(f.oldest - 1).String()); err != nil || begin.Gap || begin.At.number != f.oldest-1 {
			t.Errorf("a client that missed none begins at %+v, %v", begin, err)
		}
		if size == 10 && f.next-f.oldest != MaxRetained {
			t.Errorf("only %d events are kept", f.next-f.oldest)
		}
	}
}

func TestFeedKeepsTheLastEventOfAnySize(t *testing.T) {
	t.Parallel()
	f := New(maxBytes)
	for range 3 {
		if err := f.Publish("x", strings.Repeat("x", 2*maxBytes)); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.after(place{event: 2}); len(got.frames) != 1 || f.next-f.oldest != 1 {
		t.Errorf("%d events are kept, want the last one", f.next-f.oldest)
	}
}

func TestClosedFeedEndsAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	f := New(maxBytes, "now")
	if err := errors.Join(f.Publish("x", 1), f.SetState("now", 1)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	f.Close()
	if err := errors.Join(f.Publish("x", 2), f.SetState("now", 2)); err != nil {
		t.Error(err)
	}
	last := f.after(place{})
	if last.ended || len(last.frames) != 2 {
		t.Errorf("the last batch is %+v, want an event and a state", last)
	}
	if end := f.after(last.through); !end.ended {
		t.Errorf("after it: %+v, want the end", end)
	}
}

func TestClientSeesEachEventAndTheNewestState(t *testing.T) {
	t.Parallel()
	f := New(maxBytes, "now")
	slow := place{}
	quick := slow
	for i := range 3 * MaxRetained {
		if err := errors.Join(f.Publish("x", i), f.SetState("now", i)); err != nil {
			t.Fatal(err)
		}
		b := f.after(quick)
		quick = b.through
		data := fmt.Sprintf("data: %d\n", i)
		if b.behind || len(b.frames) != 2 || !strings.Contains(string(b.frames[0]), data) || !strings.Contains(string(b.frames[1]), data) {
			t.Fatalf("after %d: %+v", i, b)
		}
	}
	if !f.after(slow).behind {
		t.Error("a client that saw nothing is not behind")
	}
	begin, err := f.Join(f.Position(3*MaxRetained - 5).String())
	if b := f.after(place{event: begin.At.number}); err != nil || begin.Gap || len(b.frames) != 6 {
		t.Errorf("%+v, %v, then %d frames; want five events and a state", begin, err, len(b.frames))
	}
}

func TestFeedRefusesWhatHasNoFormInJSON(t *testing.T) {
	t.Parallel()
	f := New(maxBytes, "now")
	if f.Publish("x", func() {}) == nil || f.SetState("now", func() {}) == nil {
		t.Error("a function was published")
	}
	if b := f.after(place{}); len(b.frames) != 0 {
		t.Errorf("%s", b.frames)
	}
}

func FuzzJoin(f *testing.F) {
	for _, seed := range []string{"abcdefghij-1", "abcdefghij-0", "-", "abcdefghij-18446744073709551615", "abcdefghij-01", "2345672345-9", "\n", "abcdefghij-1\r\nX: y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parsePosition(text); err == nil && p.String() != text {
			t.Errorf("%q was read as %q", text, p)
		}
		feed := New(maxBytes)
		if begin, _ := feed.Join(text); begin.At.feed != feed.name || begin.At.number >= feed.next {
			t.Errorf("%q begins at %v", text, begin)
		}
	})
}
