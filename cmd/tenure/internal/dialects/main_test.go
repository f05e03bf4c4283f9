package dialects

import (
	"flag"
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// atOnce is how many tests run at once: they mostly wait.
const atOnce = "4"

func TestMain(m *testing.M) {
	if role := os.Getenv(childVariable); role != "" {
		os.Exit(child(role))
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce) // it parses
	}
	pgtest.Main(mariatest.WithServers(m))
}
