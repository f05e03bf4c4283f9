package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// page is a window of the browser. When its test ends, it must have logged no
// error and asked nothing of another host.
type page struct {
	testing.TB
	ctx  context.Context
	home string

	mu       sync.Mutex
	faults   []string
	requests int
}

// open opens a window on the dashboard.
func (w *world) open(path string) *page {
	w.Helper()
	ctx, cancel := chromedp.NewContext(browser(w))
	p := &page{TB: w, ctx: ctx, home: w.url}
	w.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, fault := range p.faults {
			w.Errorf("in the browser: %s", fault)
		}
		if p.requests == 0 {
			w.Error("no request was seen")
		}
	})
	origin, err := url.Parse(w.url)
	if err != nil {
		w.Fatal(err)
	}
	if err := chromedp.Listen(ctx, func(event any) { p.watch(event, origin.Host) }); err != nil {
		w.Fatal(err)
	}
	p.do("open a window", command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}),
		command(runtime.Enable, cdp.Empty{}), chromedp.EmulateViewport(1360, 900))
	p.do("open "+path, chromedp.Navigate(w.url+path))
	return p
}

// watch notes what should not happen in a window.
func (p *page) watch(event any, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := func(format string, args ...any) { p.faults = append(p.faults, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests++
		if to, err := url.Parse(e.Request.URL); err != nil || to.Host != host {
			fault("a request to %s", e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		fault("an exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			fault("console: %s %v", e.Type, e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			fault("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	}
}

// forgive forgets the faults with a text in them, which the test has provoked.
func (p *page) forgive(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var rest []string
	for _, fault := range p.faults {
		if !strings.Contains(fault, text) {
			rest = append(rest, fault)
		}
	}
	p.faults = rest
}

// command makes an action of a command of the browser's protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, c, params)
		return err
	})
}

// do runs actions within the patience of a test.
func (p *page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// visit opens another part of the page, by its link's target.
//
// The name of a node in braces represents the node's id.
func (p *page) visit(hash string) {
	p.Helper()
	if before, node, ok := strings.Cut(hash, "{"); ok {
		node = strings.TrimSuffix(node, "}")
		hash = before + value[string](p, `fetch("api/nodes?search=" + `+quote(node)+`).then((r) => r.json()).then((nodes) => nodes.rows[0].id)`)
	}
	value[bool](p, fmt.Sprintf("location.hash = %q, true", hash))
}

// value evaluates an expression, which may be a promise.
func value[V any](p *page, expression string) V {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience+10*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// await waits until an expression is true, and returns how long that took.
func (p *page) await(what, expression string) time.Duration {
	p.Helper()
	began := time.Now()
	found := value[bool](p, fmt.Sprintf(`new Promise((done) => {
		const end = performance.now() + %d;
		const look = () => (%s) ? done(true) : performance.now() > end ? done(false) : setTimeout(look, 10);
		look();
	})`, patience.Milliseconds(), expression))
	if !found {
		p.Fatalf("%s: not within %v; the page shows:\n%s", what, patience, value[string](p, "document.body.innerText"))
	}
	return time.Since(began)
}

// shows waits until a text is on the page.
func (p *page) shows(text string) time.Duration {
	p.Helper()
	return p.await("shows "+text, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// focus waits until an element takes the focus. A hidden element, such as a graph whose
// data is still being read, does not take it.
func (p *page) focus(element string) {
	p.Helper()
	p.await("the focus is on "+element, fmt.Sprintf("((e) => (e?.focus(), e && document.activeElement === e))(%s)", element))
}

// quote is a text as JavaScript writes it.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // a text always can be
	return string(quoted)
}

// theme makes the system light or dark.
func (p *page) theme(name string) {
	p.Helper()
	p.do("theme", command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	}))
}
