package live

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = errors.New("down")

// counter is a source whose value counts the reads.
type counter struct {
	reads int
	fail  func(read int) bool
}

func (c *counter) read(context.Context) (int, error) {
	c.reads++
	if c.fail != nil && c.fail(c.reads) {
		return 0, errDown
	}
	return c.reads, nil
}

// follow runs Follow for a time and returns what it showed and when.
func follow(t *testing.T, limit time.Duration, source Source[int]) (shown []Reading[int], at []time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	err = Follow(ctx, source, func(r Reading[int]) error {
		shown, at = append(shown, r), append(at, time.Since(start))
		return nil
	})
	return shown, at, err
}

// Without notifications a value is read each second; with notifications after each,
// and every few seconds in case one is lost.
func TestFollowReadsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		if shown, _, err := follow(t, 3500*time.Millisecond, Source[int]{Read: c.read}); err != nil || len(shown) != 4 {
			t.Errorf("without notifications: %v, %v; want 4 readings in 3.5 s", shown, err)
		}
		c = &counter{}
		listen := func(ctx context.Context, wake func()) error {
			wake()
			time.Sleep(2500 * time.Millisecond)
			wake()
			<-ctx.Done()
			return nil
		}
		_, at, err := follow(t, 9*time.Second, Source[int]{Read: c.read, Listen: listen})
		want := []time.Duration{0, 100 * time.Millisecond, 2500 * time.Millisecond, 7500 * time.Millisecond}
		if err != nil || len(at) != len(want) {
			t.Fatalf("with notifications: %v, %v; want %v", at, err, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("reading %d at %v; want %v", i, at[i], want[i])
			}
		}
	})
}

// While the database does not answer, the last value is shown each second with its age.
func TestFollowShowsAgeOfLastValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{fail: func(read int) bool { return read > 1 }}
		shown, at, err := follow(t, 5500*time.Millisecond, Source[int]{Read: c.read})
		if err != nil || len(shown) < 5 {
			t.Fatalf("%v, %v", shown, err)
		}
		for i, r := range shown[1:] {
			if r.Value != 1 || !errors.Is(r.Err, errDown) || at[i+1] <= at[i] && at[i+1] < time.Second {
				t.Errorf("at %v: %+v; want the first value and the error", at[i+1], r)
			}
		}
		if last := shown[len(shown)-1]; time.Since(last.At) < 5*time.Second {
			t.Errorf("the last value is shown as of %v", last.At)
		}
	})
}

// A read that does not return is bounded, and the others of Follow end with its context.
func TestFollowBoundsReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		stuck := func(ctx context.Context) (int, error) {
			if reads++; reads == 1 {
				return 1, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		shown, _, err := follow(t, 20*time.Second, Source[int]{Read: stuck})
		if err != nil || reads < 3 || len(shown) < 10 {
			t.Errorf("%d reads, shown %d times, %v", reads, len(shown), err)
		}
	})
}

// The error of the first read ends Follow, and so does an error of show.
func TestFollowReturnsErrors(t *testing.T) {
	t.Parallel()
	c := &counter{fail: func(int) bool { return true }}
	if _, _, err := follow(t, time.Minute, Source[int]{Read: c.read}); !errors.Is(err, errDown) {
		t.Errorf("the first read: %v", err)
	}
	err := Follow(t.Context(), Source[int]{Read: (&counter{}).read}, func(Reading[int]) error { return errDown })
	if !errors.Is(err, errDown) {
		t.Errorf("show: %v", err)
	}
}
