package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/model/trace"
)

// replayedModels are the models whose units package trace knows.
var replayedModels = []string{"agent.pml", "lease.pml", "promotion.pml", "reunion.pml", "session.pml"}

// unit is a step, an inline or a macro of a model.
type unit struct{ name, digest string }

var (
	unitStart  = regexp.MustCompile(`(?m)^\s*:: (?:atomic )\{|^inline \w+\(`)
	printed    = regexp.MustCompile(`printf\("([^"]*?)\\n"`)
	macroLine  = regexp.MustCompile(`(?m)^#define (\w+).*$`)
	inlineName = regexp.MustCompile(`^inline (\w+)\(`)
	plComment  = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// unitsOf lists the units of a model. The texts that a step prints name it, or else how it
// begins. All definitions of a macro are one unit.
func unitsOf(text []byte) (units []unit) {
	source := plComment.ReplaceAllString(string(text), "")
	for _, at := range unitStart.FindAllStringIndex(source, -1) {
		body := strings.TrimSpace(source[at[0]:closing(source, at[0])])
		units = append(units, unit{unitName(body), textDigest(body)})
	}
	macros := map[string]string{}
	var order []string
	for _, found := range macroLine.FindAllStringSubmatch(source, -1) {
		if macros[found[1]] == "" {
			order = append(order, found[1])
		}
		macros[found[1]] += found[0] + "\n"
	}
	for _, name := range order {
		units = append(units, unit{"#define " + name, textDigest(macros[name])})
	}
	return units
}

func unitName(body string) string {
	if found := inlineName.FindStringSubmatch(body); found != nil {
		return "inline " + found[1]
	}
	var texts []string
	for _, found := range printed.FindAllStringSubmatch(body, -1) {
		texts = append(texts, found[1])
	}
	if len(texts) == 0 {
		words := strings.Fields(body)
		return strings.Join(words[:min(8, len(words))], " ")
	}
	return strings.Join(texts, " / ")
}

// closing returns the end of the braces that begin at or after a position.
func closing(source string, from int) int {
	depth := 0
	for i := from; i < len(source); i++ {
		switch source[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(source)
}

func textDigest(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	return hex.EncodeToString(sum[:6])
}

// untied compares the table of package trace with the models: each unit has a line with its
// digest, and each rule a step.
func untied(models []model, table string) (faults []string) {
	lines := tableLines(table)
	for _, m := range models {
		if !slices.Contains(replayedModels, m.name) {
			continue
		}
		for _, u := range unitsOf(m.text) {
			key := m.name + " | " + u.name
			line, known := lines[key]
			delete(lines, key)
			switch {
			case !known:
				faults = append(faults, fmt.Sprintf("%s has no line; add: %s | %s | KIND, or - and a reason", key, key, u.digest))
			case line[0] != u.digest:
				faults = append(faults, fmt.Sprintf("%s has changed: do its rules (%s) still say the same?", key, line[1]))
			}
			faults = append(faults, unknownKinds(key, line[1])...)
		}
	}
	for key := range lines {
		faults = append(faults, "no model has "+key)
	}
	for _, kind := range trace.Kinds() {
		if len(trace.Models(kind)) == 0 && !slices.Contains(trace.Beyond, kind) {
			faults = append(faults, fmt.Sprintf("the rule of %q names no step of a model", kind))
		}
	}
	slices.Sort(faults)
	return faults
}

func unknownKinds(key, kinds string) (faults []string) {
	if kinds == "" || strings.HasPrefix(kinds, "- ") {
		return nil
	}
	for kind := range strings.SplitSeq(kinds, ", ") {
		if !slices.Contains(trace.Kinds(), steps.Kind(kind)) {
			faults = append(faults, fmt.Sprintf("%s names the rule %q, which does not exist", key, kind))
		}
	}
	return faults
}

// tableLines returns digest and kinds by file and name.
func tableLines(table string) map[string][2]string {
	lines := map[string][2]string{}
	for line := range strings.Lines(table) {
		if f := strings.Split(strings.TrimSpace(line), " | "); len(f) == 4 {
			lines[f[0]+" | "+f[1]] = [2]string{f[2], f[3]}
		}
	}
	return lines
}

// rewriteTable writes the digests of the present models into the table of package trace.
func rewriteTable(folder string, models []model) error {
	table := trace.Table
	lines := tableLines(table)
	for _, m := range models {
		for _, u := range unitsOf(m.text) {
			key := m.name + " | " + u.name
			if line, known := lines[key]; known {
				table = strings.Replace(table, key+" | "+line[0]+" | ", key+" | "+u.digest+" | ", 1)
			}
		}
	}
	if table == trace.Table {
		return nil
	}
	return os.WriteFile(filepath.Join(folder, "trace", "steps.txt"), []byte(table), 0o644)
}
