package observer

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if settings := os.Getenv(workerVariable); settings != "" {
		os.Exit(workerMain(settings))
	}
	flag.Parse()
	pgtest.Main(withPrograms{m})
}

// programs is the folder with the programs under test.
var programs string

// withPrograms runs the tests with both programs, which a short run does not need.
type withPrograms struct{ tests *testing.M }

func (w withPrograms) Run() int {
	if testing.Short() {
		return w.tests.Run()
	}
	folder, err := os.MkdirTemp("", "tenure-observer-")
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }() // it is in the folder of temporary files
		programs = folder
		err = build("cmd/tenure", "server/tenure-server")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.tests.Run()
}

// build builds programs from folders of the repository.
func build(folders ...string) error {
	for _, folder := range folders {
		command := exec.Command("go", "build", "-o", filepath.Join(programs, filepath.Base(folder)), ".")
		command.Dir = filepath.Join("..", "..", folder)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", folder, err, output)
		}
	}
	return nil
}
