package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// patience is how long a test waits for something that should happen.
const patience = 30 * time.Second

// images is where TestImagesAreWritten writes what it sees; it needs the whole path.
var images = flag.String("images", "", "folder to write screenshots of all pages to")

func TestMain(m *testing.M) {
	if settings := os.Getenv(childVariable); settings != "" {
		os.Exit(runChild(settings))
	}
	flag.Parse()
	pgtest.Main(&withBrowser{m})
}

// withBrowser ends the browser after the tests.
type withBrowser struct{ *testing.M }

func (m *withBrowser) Run() int {
	code := m.M.Run()
	if started.Load() {
		running, _ := shared() // a test has reported the error
		running.end()
	}
	return code
}

// chromium is the browser while it runs.
type chromium struct {
	ctx context.Context
	end func()
}

// One browser serves all tests, each in separate windows.
var (
	shared  = sync.OnceValues(start)
	started atomic.Bool
)

// browser returns the context of the browser, which starts at the first call.
func browser(t testing.TB) context.Context {
	t.Helper()
	pgtest.Long(t)
	started.Store(true)
	running, err := shared()
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return running.ctx
}

func start() (chromium, error) {
	nothing := chromium{end: func() {}}
	program, err := findChromium()
	if err != nil {
		return nothing, err
	}
	folder, err := os.MkdirTemp("", "tenure-browser-")
	if err != nil {
		return nothing, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(folder), chromedp.NoSandbox, chromedp.WindowSize(1360, 900),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true),
	)
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	running := chromium{ctx, func() {
		limited, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		_ = chromedp.Cancel(limited) // it is ended below, if not by this
		cancel()
		endAllocator()
		chromedp.FromContext(ctx).Allocator.Wait()
		_ = os.RemoveAll(folder) // another run makes another one
	}}
	return running, chromedp.Do(ctx)
}

// findChromium finds the browser under one of its names.
func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("no Chromium is installed; on Debian and Ubuntu run: apt-get install chromium")
}
