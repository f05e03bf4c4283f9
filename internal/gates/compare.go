package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// modules are all modules, by their folder.
func modules() []string {
	var all []string
	seen := map[string]bool{}
	for _, t := range testsOfRepository {
		if !seen[t.module] {
			seen[t.module] = true
			all = append(all, t.module)
		}
	}
	return all
}

// compare builds the tests of all modules and compares the list of go test -list with
// the one that the gates have read from the source.
func (r *runner) compare(ctx context.Context) error {
	known := map[string]bool{}
	for _, t := range testsOfRepository {
		if t.kind != unrunKind { // go test does not list them
			known[t.pkg()+" "+t.name] = true
		}
	}
	count := len(known)
	var failed []error
	for _, module := range modules() {
		command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-ldflags=-w", "-list=.", "./...")
		command.Dir = filepath.Join(r.root, module)
		command.Stderr = r.out
		text, err := command.Output()
		if err != nil {
			return fmt.Errorf("go test -list in %s: %w\n%s", module, err, text)
		}
		var names []string
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			switch {
			case len(fields) == 1:
				names = append(names, fields[0])
			case len(fields) > 1 && fields[0] == "ok":
				pkg := strings.TrimPrefix(strings.TrimPrefix(fields[1], modulePath), "/")
				if pkg == "" {
					pkg = "."
				}
				for _, name := range names {
					if !known[pkg+" "+name] {
						failed = append(failed, fmt.Errorf("go test lists %s of %s, the gates do not know it", name, pkg))
					}
					delete(known, pkg+" "+name)
				}
				names = nil
			}
		}
	}
	for name := range known {
		failed = append(failed, fmt.Errorf("go test does not list %s", name))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "go test lists the same %d tests\n", count)
	return nil
}
