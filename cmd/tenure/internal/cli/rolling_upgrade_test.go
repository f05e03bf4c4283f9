//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// laterVersion is a file of package postgres that makes the program one of a later
// version: it has one more migration, which programs of the present version can use.
const laterVersion = `package postgres

import "github.com/exactly-one/tenure/internal/schema"

func init() {
	core.Steps = append(core.Steps, schema.Step{
		Up:         "ALTER TABLE {nodes} ADD COLUMN trial integer",
		Down:       "ALTER TABLE {nodes} DROP COLUMN trial",
		UsableFrom: core.Newest(),
	})
}
`

// buildLaterProgram builds the program from the present source and laterVersion.
func buildLaterProgram(t *testing.T) string {
	t.Helper()
	return buildWith(t, laterVersion)
}

// buildWith builds the program from the present source and one more file of package
// postgres.
func buildWith(t *testing.T, file string) string {
	t.Helper()
	added, err := filepath.Abs("../../../../postgres/another_build.go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	source, overlay := filepath.Join(folder, "another_build.go"), filepath.Join(folder, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{added: source}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{source: []byte(file), overlay: text} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return buildProgram(t, "-overlay", overlay)
}

// TestProgramsOfTwoVersionsReplaceOneAnother: processes of the program and of one with a
// later schema replace one another, one by one and back. The first later process migrates
// the schema while the others live, and no vacancy lasts a second. No version has been
// released, so the later program is the present source with one more migration.
func TestProgramsOfTwoVersionsReplaceOneAnother(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	older, later := buildProgram(t), buildLaterProgram(t)
	started := 0
	start := func(program string) *process {
		started++
		p := launchProgram(t, program, nil, place.with("run", "-o", "json", "--role", "billing", "--name", fmt.Sprintf("node-%d", started))...)
		if started == 1 {
			p.await("acquired")
		} else {
			p.await("acquire_failed") // another node leads
		}
		return p
	}
	nodes := []*process{start(older), start(older)}
	replace := func(program string) {
		t.Helper()
		for i, node := range nodes {
			nodes[i] = start(program)
			node.signal(syscall.SIGTERM)
			if code := node.exit(); code != console.ExitDone {
				t.Fatalf("exit code %d", code)
			}
		}
	}
	replace(later)
	migrated := false
	err := place.server.Conn(t).QueryRow(t.Context(), `
		SELECT EXISTS (SELECT FROM information_schema.columns WHERE table_schema = $1 AND column_name = 'trial')`, place.schema).Scan(&migrated)
	if err != nil || !migrated {
		t.Fatalf("the later program has migrated: %v, %v", migrated, err)
	}
	replace(older)

	var history roles.TermHistoryRecord
	invoke(t, place.with("history", "--role", "billing", "-o", "json")...).want(t, console.ExitDone).decode(t, &history)
	if len(history.Terms) < 3 {
		t.Errorf("%d terms; want one for each leader that was replaced, and one more", len(history.Terms))
	}
	measured := 0
	for _, term := range history.Terms {
		if term.Vacant == nil {
			continue
		}
		measured++
		if *term.Vacant > 1000 {
			t.Errorf("the role was vacant for %v ms before %+v", *term.Vacant, term)
		}
	}
	if measured != len(history.Terms)-1 {
		t.Errorf("%d of %d terms say how long the role was vacant before; want all but the first", measured, len(history.Terms))
	}
}
