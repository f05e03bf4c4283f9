//go:build linux

package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/program/console"
)

// anotherBuild returns a file of package postgres with which the program has the same
// version of the schema as the present source, from an edited migration.
func anotherBuild(before, after string) string {
	return `package postgres

import "strings"

func init() {
	core.Steps[0].Up = strings.Replace(core.Steps[0].Up, ` + "`" + before + "`, `" + after + "`" + `, 1)
}
`
}

// outcome runs a program to its end and returns the exit code and all that it printed.
func (p place) outcome(t *testing.T, program string, args ...string) (code int, printed string) {
	t.Helper()
	child := launchProgram(t, program, nil, p.with(args...)...)
	var lines strings.Builder
	for line, ok := child.line(); ok; line, ok = child.line() {
		lines.WriteString(line + "\n")
	}
	code = child.exit()
	return code, lines.String() + child.log()
}

// TestProgramsWithOneVersionOfTwoKinds: the functions of another build's version 1 differ
// from this one's. Both ways, a node ends and says what to do, in one line, and so does every
// command on the schema; a repair makes the tables those of the present program.
func TestProgramsWithOneVersionOfTwoKinds(t *testing.T) {
	t.Parallel()
	place, present := newPlace(t), buildProgram(t)
	another := buildWith(t, anotherBuild("BEGIN\n", "BEGIN\n    -- Another build.\n"))
	for _, pair := range [][2]string{{another, present}, {present, another}} {
		owner, foreign := pair[0], pair[1]
		node := launchProgram(t, owner, nil, place.with("run", "-o", "json", "--role", "billing")...)
		node.await("acquired")
		for name, args := range map[string][]string{
			"a node":     {"run", "--role", "billing"},
			"migrate up": {"migrate", "up"},
			"acquire":    {"acquire", "--role", "other"},
		} {
			code, printed := place.outcome(t, foreign, args...)
			if code != console.ExitUsage || strings.Count(printed, "another build of Tenure made its version 1 of core") != 1 ||
				!strings.Contains(printed, "run a build of that kind, or end all nodes and run tenure migrate repair") {
				t.Errorf("%s: exit code %d, %s; want %d and one line that says what to do", name, code, printed, console.ExitUsage)
			}
		}
		if code, printed := place.outcome(t, foreign, "doctor"); code == console.ExitDone || !strings.Contains(printed, "another build of Tenure made its version 1") {
			t.Errorf("doctor: exit code %d, %s; want that it names the other build", code, printed)
		}
		if code, printed := place.outcome(t, foreign, "migrate", "status"); code != console.ExitDone || !strings.Contains(printed, "1 (another build)") {
			t.Errorf("migrate status: exit code %d, %s; want that it names the other build", code, printed)
		}
		if code, printed := place.outcome(t, owner, "migrate", "status"); code != console.ExitDone || strings.Contains(printed, "another build)") {
			t.Errorf("migrate status of the build that made the tables: exit code %d, %s", code, printed)
		}
		node.signal(syscall.SIGTERM)
		if code := node.exit(); code != console.ExitDone {
			t.Fatalf("the node ended with %d", code)
		}
		if code, printed := place.outcome(t, foreign, "migrate", "repair", "--yes"); code != console.ExitDone {
			t.Fatalf("migrate repair: exit code %d, %s", code, printed)
		}
	}
}

// TestProgramsOfTwoKindsWithTheSameTablesReplaceOneAnother: an edit that the tables do not
// show keeps no program out, and status names it.
func TestProgramsOfTwoKindsWithTheSameTablesReplaceOneAnother(t *testing.T) {
	t.Parallel()
	place, present := newPlace(t), buildProgram(t)
	other := buildWith(t, anotherBuild("IS 'Sets of roles", "IS 'All sets of roles"))
	start := func(program, until string) *process {
		p := launchProgram(t, program, nil, place.with("run", "-o", "json", "--role", "billing")...)
		p.await(until)
		return p
	}
	node := start(other, "acquired")
	for _, program := range []string{present, other, present} {
		next := start(program, "acquire_failed")
		node.signal(syscall.SIGTERM)
		if code := node.exit(); code != console.ExitDone {
			t.Fatalf("exit code %d", code)
		}
		next.await("acquired")
		node = next
	}
	if got := invoke(t, place.with("migrate", "status")...).want(t, console.ExitDone); !strings.Contains(got.stdout, "1 (another build)") {
		t.Errorf("migrate status: %s; want that it names the other build", got.stdout)
	}
	invoke(t, place.with("migrate", "up")...).want(t, console.ExitDone)
}
