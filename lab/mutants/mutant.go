package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mutant is one break of one line.
type mutant struct {
	name    string // unique; its first word is the area
	file    string // from the root of the repository
	from    string // occurs exactly once in the file
	to      string // differs from it in one line
	promise string // the invariant or the promise that the break violates
	tests   []tests
	says    string // a text of the tests; a failure without it does not count
}

// tests are the tests of one package that match a pattern.
type tests struct {
	module string // folder of the module, from the root of the repository
	folder string // of the package, within the module
	run    string // pattern of -test.run
	args   string // further arguments of the test binary, separated by spaces
}

// limit bounds one run of a test binary. It is for hangs, not for slow machines.
const limit = 2 * time.Minute

// String is the command that tries the mutant alone.
func (m mutant) String() string {
	return fmt.Sprintf("go run ./lab/mutants -v '%s'", strings.ReplaceAll(m.name, "'", `'\''`))
}

// in names tests of the root module.
func in(folder, run string) tests { return tests{".", folder, run, ""} }

// inCommand names tests of the module of the program on each machine.
func inCommand(folder, run string) tests { return tests{"cmd/tenure", folder, run, ""} }

// inShared names tests of the module that the programs share.
func inShared(folder, run string) tests { return tests{"internal/program", folder, run, ""} }

// inServer names tests of the server's module.
func inServer(folder, run string) tests { return tests{"server", folder, run, ""} }

// inLaboratory names tests of the laboratory's module.
func inLaboratory(folder, run string) tests { return tests{"lab", folder, run, ""} }

// schedules names the first schedules of the simulator.
func schedules(n int) tests {
	return tests{"lab", "sim", "^TestSchedules$", fmt.Sprintf("-schedules=%d", n)}
}

// String is how to run the tests by hand.
func (t tests) String() string {
	line := fmt.Sprintf("go test ./%s -run '%s'", filepath.ToSlash(filepath.Join(t.module, t.folder)), t.run)
	if t.args != "" {
		line += " -args " + t.args
	}
	return line
}

// mutate returns the text of the mutant's file with the break, or an error if
// the entry is stale.
func (m mutant) mutate(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(source), m.from); n != 1 {
		return nil, fmt.Errorf("stale: the text to break occurs %d times in %s, not once: %q", n, m.file, m.from)
	}
	if n := linesThatDiffer(m.from, m.to); n != 1 {
		return nil, fmt.Errorf("the break changes %d lines, not one: %q", n, m.from)
	}
	return []byte(strings.Replace(string(source), m.from, m.to, 1)), nil
}

// linesThatDiffer counts the lines of one text that the other has not in its
// place. Texts with different numbers of lines differ in all of them.
func linesThatDiffer(from, to string) int {
	before, after := strings.Split(from, "\n"), strings.Split(to, "\n")
	if len(before) != len(after) {
		return max(len(before), len(after))
	}
	differ := 0
	for i := range before {
		if before[i] != after[i] {
			differ++
		}
	}
	return differ
}

// repository returns the root of the repository, which holds the working
// directory.
func repository() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("no go.work above the working directory")
		}
		folder = parent
	}
}
