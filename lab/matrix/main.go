// Command matrix runs the suites of tests that concern a database on each server
// that the project supports, and writes what passed to the page docs/reference/tested-with.md.
// With -proxies it runs the suites behind PgBouncer, Pgpool-II, HAProxy and TCP proxies. It downloads the versions of PostgreSQL, as internal/pgserver/fetch does.
// With -tests it runs the tests of one package, as go test does, but an interrupt leaves no server and no file.
//
// A row is written when its suites have ended, so a run that is interrupted keeps
// the rows before. The servers end with the tests that started them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// command is the program, but for its end.
func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	page := flags.String("page", filepath.Join("docs", "reference", "tested-with.md"), "the `file` whose table gets the results; empty for none")
	only := flags.String("suites", "", "run only these `suites`, separated by commas, and update their cells")
	between := flags.Bool("proxies", false, "run the suites behind proxies, which the arguments name instead of servers")
	tests := flags.String("tests", "", "run the tests of the package in this `folder`, with the flags of go test after --")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: matrix [flags] [SERVER...]\n       matrix -proxies [flags] [PROXY...]\n       matrix -tests=FOLDER -- [flags of go test]\nservers: %s\nsuites: %s\nproxies: %s\n",
			strings.Join(names(), " "), strings.Join(columns, " "), strings.Join(proxyNames(), " "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp // it has said why
	}
	selected := columns
	if *only != "" {
		selected = strings.Split(*only, ",")
	}
	var run func(*runner) error
	switch {
	case *tests != "":
		run = func(r *runner) error { return r.runTests(ctx, suite{module: ".", folder: *tests}, flags.Args()) }
	case *between:
		chosen, err := chooseProxies(flags.Args())
		if err != nil {
			return err
		}
		run = func(r *runner) error { return runProxies(ctx, r, chosen, *page) }
	default:
		chosen, err := choose(flags.Args())
		if err != nil {
			return err
		}
		run = func(r *runner) error { return runAll(ctx, r, chosen, selected, *page) }
	}
	r, err := newRunner()
	if err != nil {
		return err
	}
	return errors.Join(run(r), r.close())
}

// runAll runs the suites of the servers and returns an error if a test failed.
func runAll(ctx context.Context, r *runner, servers []server, selected []string, page string) error {
	failed := 0
	for _, s := range servers {
		found, err := s.find(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, m := range s.modes {
			cells := map[string]string{}
			for _, u := range m.suites {
				if !slices.Contains(selected, u.column) {
					continue
				}
				began := time.Now()
				result, err := r.run(ctx, u, found.environment)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", found.title, m.name, u.column, err)
				}
				fmt.Printf("%s, %s, %s: %s (%.0f s)\n", found.title, m.name, u.column, result, time.Since(began).Seconds())
				failed += result.failed
				cells[u.column] = result.String()
			}
			if page == "" || len(cells) == 0 {
				continue
			}
			if err := writeRow(page, row{s.title, found.version, m.name, cells, time.Now()}); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d tests failed", failed)
	}
	return nil
}
