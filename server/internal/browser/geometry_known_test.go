package browser

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// knownGeometry lists the findings that the test of the pages accepts, one in a line; its first lines
// describe the format.
//
//go:embed testdata/geometry-known.txt
var knownGeometry string

// knownFault is a finding that is accepted until the page is mended.
type knownFault struct {
	line, page, kind, text string
	widths                 []int

	seen map[int]bool // widths at which it occurred
}

// accepts reports whether a finding is the known one, and notes that it occurs.
func (k *knownFault) accepts(page string, width int, f geometryFinding) bool {
	if (k.page != page && k.page != "all") || k.kind != f.Kind || !slices.Contains(k.widths, width) || !strings.Contains(f.String(), k.text) {
		return false
	}
	k.seen[width] = true
	return true
}

// gone describes the widths at which a known fault no longer occurs.
func (k *knownFault) gone() (messages []string) {
	for _, width := range k.widths {
		if !k.seen[width] {
			messages = append(messages, fmt.Sprintf("this known fault no longer occurs at %d pixels: remove the width, or the line: %s", width, k.line))
		}
	}
	return messages
}

// parseKnownFaults reads a list of known faults.
func parseKnownFaults(list string) (known []*knownFault, err error) {
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if len(fields) != 5 || slices.Contains(fields, "") {
			return nil, fmt.Errorf("the line %q does not have five fields", line)
		}
		k := &knownFault{line: line, page: fields[0], kind: fields[2], text: fields[3], seen: map[int]bool{}}
		for _, text := range strings.Fields(fields[1]) {
			width, err := strconv.Atoi(text)
			if err != nil || !slices.Contains(geometryWidths, width) {
				return nil, fmt.Errorf("the line %q has the width %q; want widths of %v", line, text, geometryWidths)
			}
			k.widths = append(k.widths, width)
		}
		known = append(known, k)
	}
	return known, nil
}

// TestKnownFaultsOfGeometryCanOnlyShrink: a known fault accepts its own findings only, and one that no
// longer occurs is reported.
func TestKnownFaultsOfGeometryCanOnlyShrink(t *testing.T) {
	known, err := parseKnownFaults("# a comment\n\naudit | 390 1100 | overlap | .list .name | rows are too low\n")
	if err != nil || len(known) != 1 {
		t.Fatalf("got %d known faults and %v, want 1", len(known), err)
	}
	finding := geometryFinding{Kind: "overlap", Text: "drain", Where: "div.list .name", OtherText: "node", OtherWhere: "b"}
	for _, c := range []struct {
		page, kind string
		width      int
		want       bool
	}{{"audit", "overlap", 390, true}, {"audit", "overlap", 1440, false}, {"audit", "cut", 390, false}, {"work", "overlap", 390, false}} {
		finding.Kind = c.kind
		if got := known[0].accepts(c.page, c.width, finding); got != c.want {
			t.Errorf("a finding of kind %s on page %s at %d pixels is accepted: %t, want %t", c.kind, c.page, c.width, got, c.want)
		}
	}
	if gone := known[0].gone(); len(gone) != 1 || !strings.Contains(gone[0], "at 1100 pixels") {
		t.Errorf("the faults that are gone are %q, want one at 1100 pixels", gone)
	}
	for _, list := range []string{"audit | 390 | overlap | .name", "audit | 391 | overlap | .name | rows", "audit | 390 | | .name | rows"} {
		if _, err := parseKnownFaults(list); err == nil {
			t.Errorf("the list %q is accepted, want an error", list)
		}
	}
}
