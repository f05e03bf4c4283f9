package browser

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// bare is a dashboard without anything to configure.
var bare = dashboard.Config{}

// shown is what the first page must show without scrolling: regular expressions for the cause, the extent
// and the present state.
type shown struct{ cause, extent, state string }

// fault is something that happens to an installation, and what a user who opens the dashboard must see.
type fault struct {
	name string
	// arrange makes the installation. begin provokes the fault.
	arrange func(*testing.T) (w *world, begin func())
	// then happens some time after the fault.
	then map[time.Duration]func(*world)
	// What is shown after 1, 10 and 60 seconds.
	early, later, late shown
}

// TestFaultsAreShownWithoutScrolling: 1, 10 and 60 seconds after each of eight faults, the first page
// shows the cause, the extent and the present state without scrolling, at a desk and on a phone. With
// TENURE_WRITE_PICTURES=1 it writes the pictures in docs/images/incidents.
func TestFaultsAreShownWithoutScrolling(t *testing.T) {
	browser(t)
	if os.Getenv(writePictures) != "" {
		if err := os.MkdirAll(incidentPictures, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.follow(t)
		})
	}
}

// follow provokes the fault and looks at the page as time passes.
func (f fault) follow(t *testing.T) {
	w, begin := f.arrange(t)
	p := w.open("")
	p.await("it is live", isLive)
	p.settle()
	begin()
	began := time.Now()
	steps := map[time.Duration]func(){}
	for after, happens := range f.then {
		steps[after] = func() { happens(w) }
	}
	for after, wanted := range map[time.Duration]shown{time.Second: f.early, 10 * time.Second: f.later, time.Minute: f.late} {
		steps[after] = func() { p.expectShown(f.name, began, after, wanted) }
	}
	var order []time.Duration
	for after := range steps {
		order = append(order, after)
	}
	slices.Sort(order)
	for _, after := range order {
		due := time.NewTimer(time.Until(began.Add(after)))
		select {
		case <-due.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		steps[after]()
	}
}

// expectShown fails the test unless the page shows all of it, at a desk and on a phone.
func (p *page) expectShown(name string, began time.Time, after time.Duration, wanted shown) {
	p.Helper()
	for _, device := range []struct {
		name string
		set  func()
	}{
		{"desktop", func() { p.do("desk", chromedp.EmulateViewport(1360, 900)) }},
		{"phone", p.onPhone},
	} {
		device.set()
		end := time.Now().Add(patience)
		if quiet() { // only then the machine lets the page keep pace
			end = began.Add(after + time.Second)
		}
		text := p.textWith(wanted, end)
		at := time.Since(began)
		for what, pattern := range map[string]string{"cause": wanted.cause, "extent": wanted.extent, "state": wanted.state} {
			if !regexp.MustCompile(pattern).MatchString(text) {
				p.Errorf("%s, %v after the fault, %s: the %s, %q, is not in view; in view is:\n%s", name, after, device.name, what, pattern, text)
			}
		}
		p.Logf("%s, %v after the fault: shown on the %s after %v", name, after, device.name, at.Round(time.Millisecond))
		p.writePicture(fmt.Sprintf("%s-%02ds-%s", name, int(after.Seconds()), device.name))
	}
	p.do("desk", chromedp.EmulateViewport(1360, 900))
}

// textWith returns the text in view when it has all of what is wanted, or at the end.
func (p *page) textWith(wanted shown, end time.Time) string {
	p.Helper()
	return value[string](p, fmt.Sprintf(`new Promise((done) => {
		const end = performance.now() + %d, wanted = [%s, %s, %s].map((pattern) => new RegExp(pattern));
		const look = () => {
			const text = %s;
			if (wanted.every((one) => one.test(text)) || performance.now() > end) done(text);
			else setTimeout(look, 100);
		};
		look();
	})`, max(0, time.Until(end)).Milliseconds(), quote(wanted.cause), quote(wanted.extent), quote(wanted.state), textInView))
}
