package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/lab/model/trace"
)

// TestModelsDescribeThisCode fails when the code of a rule has changed and its model has not.
func TestModelsDescribeThisCode(t *testing.T) {
	models, err := readModels()
	if err != nil {
		t.Fatal(err)
	}
	changes, err := changed("../..", models)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) > 0 {
		t.Errorf("%s.\nDoes the model still describe it? Change the model, or write in its comment why it stays. Then run: go run ./lab/model -digests, and make model",
			strings.Join(changes, ".\n"))
	}
}

// TestReplayFollowsTheModels fails when a step of a model has changed, and the table of
// package trace has not.
func TestReplayFollowsTheModels(t *testing.T) {
	models, err := readModels()
	if err != nil {
		t.Fatal(err)
	}
	if faults := untied(models, trace.Table); len(faults) > 0 {
		t.Errorf("lab/model/trace/steps.txt does not describe the models:\n%s\nChange the rules, or run: go run ./lab/model -digests", strings.Join(faults, "\n"))
	}
	for i, m := range models {
		if m.name == "session.pml" {
			models[i].text = bytes.Replace(m.text, []byte("waits[i] >= TRUST ->"), []byte("waits[i] > TRUST ->"), 1)
		}
	}
	if faults := untied(models, trace.Table); len(faults) != 1 || !strings.Contains(faults[0], "gets the answer of a heartbeat has changed") {
		t.Errorf("after a change of a guard, the faults are %q; want that its step has changed", faults)
	}
}

func TestThirtyRulesAreBroken(t *testing.T) {
	models, err := readModels()
	if err != nil {
		t.Fatal(err)
	}
	seen, count := map[string]bool{}, 0
	for _, m := range models {
		count += len(m.variants)
		for _, s := range searches([]model{m}, regexp.MustCompile("")) {
			if seen[s.name()] {
				t.Errorf("two parts or variants are named %s", s.name())
			}
			seen[s.name()] = true
		}
		for _, v := range m.variants {
			if !bytes.Contains(m.text, []byte("assert("+v.property+")")) {
				t.Errorf("%s asserts no %s, which the variant %s should refute", m.name, v.property, v.name)
			}
		}
	}
	if count < 30 {
		t.Errorf("%d rules are broken on purpose; want at least 30", count)
	}
}

// The page of the documents says how many parts and variants there are.
func TestPageStatesTheNumbers(t *testing.T) {
	models, err := readModels()
	if err != nil {
		t.Fatal(err)
	}
	parts, variants := 0, 0
	for _, m := range models {
		parts += len(m.parts)
		variants += len(m.variants)
	}
	page, err := os.ReadFile("../../docs/explanation/how-it-is-proven.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("They have %d parts, and in %d variants a rule is broken on purpose.", parts, variants); !bytes.Contains(page, []byte(want)) {
		t.Errorf("the page does not say: %s", want)
	}
}

func TestDigestFollowsTheCode(t *testing.T) {
	const source = `package p

// One is a rule.
func One() int { return 1 }

func (t *T) Two() {}

var table = map[string]string{
	three: ` + "`\nSELECT 1 -- one\nFROM t`" + `,
}
`
	const migration = "CREATE FUNCTION {four}(a int)\n-- comment\nBEGIN\n    RETURN 4;\nEND\n$tenure_function$;\n"
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(file, symbol string) string {
		t.Helper()
		found, err := digest(root, reference{file: file, symbol: symbol})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	write("a.go", source)
	write("a.sql", migration)
	for _, c := range []struct{ file, symbol, same, other, by string }{
		{"a.go", "One", "// One is a rule.", "return 1", "return 2"},
		{"a.go", "T.Two", "// One is a rule.", "Two() {}", "Two() { panic(2) }"},
		{"a.go", "three", " -- one", "SELECT 1", "SELECT 2"},
		{"a.sql", "{four}", "-- comment\n", "RETURN 4", "RETURN 5"},
	} {
		text := source
		if c.file == "a.sql" {
			text = migration
		}
		before := of(c.file, c.symbol)
		write(c.file, strings.Replace(text, c.same, "", 1))
		if of(c.file, c.symbol) != before {
			t.Errorf("the digest of %s changes with a comment", c.symbol)
		}
		write(c.file, strings.Replace(text, c.other, c.by, 1))
		if of(c.file, c.symbol) == before {
			t.Errorf("the digest of %s stays when %q becomes %q", c.symbol, c.other, c.by)
		}
		write(c.file, text)
	}
	if _, err := digest(root, reference{file: "a.go", symbol: "Five"}); err == nil {
		t.Error("a symbol that does not exist has a digest")
	}
}

const (
	exhausted = "State-vector 68 byte, depth reached 215, errors: 0\n  8324969 states, stored\n  900.754\ttotal actual memory usage\n"
	violated  = "pan:1: assertion violated one_leader (at depth 60)\nWarning: Search not completed\n" +
		"State-vector 68 byte, depth reached 60, errors: 1\n   124421 states, stored\n  141.965\ttotal actual memory usage\n"
	outOfMemory = "pan: reached -DMEMLIM bound\nWarning: Search not completed\n" +
		"State-vector 76 byte, depth reached 106, errors: 0\n 42914330 states, stored\n 4999.961\ttotal actual memory usage\n"
	truncated = "error: max search depth too small\n" +
		"State-vector 76 byte, depth reached 999, errors: 0\n 42914 states, stored\n 49.961\ttotal actual memory usage\n"
	otherError = "pan:1: invalid array index\nWarning: Search not completed\n" +
		"State-vector 76 byte, depth reached 10, errors: 1\n 42 states, stored\n 4.961\ttotal actual memory usage\n"
)

func TestOnlyFinishedSearchesPass(t *testing.T) {
	for name, c := range map[string]struct {
		output  string
		variant *variant
		good    bool
	}{
		"exhausted part":           {exhausted, nil, true},
		"violated part":            {violated, nil, false},
		"refuted variant":          {violated, &variant{property: "one_leader"}, true},
		"variant refuted by other": {violated, &variant{property: "numbers_grow"}, false},
		"variant not refuted":      {exhausted, &variant{property: "one_leader"}, false},
		"memory exhausted":         {outOfMemory, nil, false},
		"truncated depth":          {truncated, nil, false},
		"other error":              {otherError, &variant{property: "one_leader"}, false},
		"no result":                {"cannot start", nil, false},
	} {
		found, err := parsePan(c.output)
		if text, good := verdict(search{variant: c.variant}, found, err); good != c.good {
			t.Errorf("%s: the verdict is %q, which passes: %v; want %v", name, text, good, c.good)
		}
	}
}

func TestUnreadableModelIsRefused(t *testing.T) {
	const whole = "/*\npart: a : all\nvariant: v -DBUG a p : broken\ncode: x.go F sha256:00\n\nAbstractions. None.\n*/\n\n#ifdef BUG\n"
	if _, err := parseModel("m.pml", []byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"part: a : all\n", "code: x.go F sha256:00\n", "Abstractions. ", "*/", " p :", "-DBUG", "\n#ifdef BUG"} {
		if _, err := parseModel("m.pml", []byte(strings.Replace(whole, c, "", 1))); err == nil {
			t.Errorf("a model without %q is accepted", c)
		}
	}
}

func TestCommandRefusesPatternWithoutMatch(t *testing.T) {
	r := &runner{out: new(bytes.Buffer)}
	models, err := readModels()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.run(t.Context(), searches(models, regexp.MustCompile("^nothing$")), 1); !errors.Is(err, errNothing) {
		t.Errorf("the error is %v; want %v", err, errNothing)
	}
}

// A folder is replayed as a whole, and each history that the models do not allow is named.
func TestFolderOfHistoriesIsReplayed(t *testing.T) {
	folder := t.TempDir()
	if err := replayAll(folder, io.Discard); err == nil {
		t.Error("an empty folder is accepted")
	}
	for name, step := range map[string]string{"good": `{"step":"opens a session"}`, "bad": `{"step":"jumps"}`} {
		if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte("{}\n"+step), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	err := replayAll(folder, &said)
	if err == nil || !strings.Contains(err.Error(), "bad.json") || strings.Contains(err.Error(), "good.json") {
		t.Errorf("the error is %v; want it to name bad.json only", err)
	}
	if want := "2 steps of 2 histories were replayed"; !strings.HasPrefix(said.String(), want) {
		t.Errorf("the command says %q; want %q", &said, want)
	}
}
