package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.uber.org/goleak"

	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// The servers of this process, made when first asked for and ended by Main.
var (
	mu  sync.Mutex
	box *pgserver.Sandbox

	shared = sync.OnceValues(func() (*pgserver.Server, error) {
		box, err := openSandbox()
		if err != nil {
			return nil, err
		}
		return box.Start(context.Background(), pgserver.Options{})
	})
)

func openSandbox() (*pgserver.Sandbox, error) {
	mu.Lock()
	defer mu.Unlock()
	if box != nil {
		return box, nil
	}
	var err error
	box, err = pgserver.NewSandbox()
	return box, err
}

// keepTemplates is the variable that with the value 0 makes each package, which is a
// separate process, prepare the data directories that its servers start from. They are
// kept otherwise, in a folder for temporary files.
const keepTemplates = "TENURE_KEEP_TEMPLATES"

// Main runs the tests of a package, ends the servers they used, and fails if a
// goroutine is left. It does not return. The tests are a [testing.M], or one with
// something around it.
func Main(m interface{ Run() int }) {
	if os.Getenv(keepTemplates) != "0" {
		sandbox.KeepTemplates()
	}
	code := m.Run()
	if err := closeSandbox(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func closeSandbox() error {
	mu.Lock()
	defer mu.Unlock()
	if box == nil {
		return nil
	}
	return box.Close()
}
