package sim

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts in testdata")

// TestScriptsMatchTranscripts runs the scripts in testdata: blocks of one command and, after a
// line of dashes, what happens because of it.
func TestScriptsMatchTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) {
				var violation *Violation
				if got, violation = play(t, string(source), Defects{}); violation != nil {
					t.Error(violation)
				}
			})
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(source) {
				t.Errorf("%s: something else happened (if it is right, run with -rewrite):\n%s", file, got)
			}
		})
	}
}

// TestScriptsRejectCountedTerms breaks the rule for term numbers: wherever the
// rows are not those that the last leader saw, a number returns.
func TestScriptsRejectCountedTerms(t *testing.T) {
	for _, name := range []string{"fail_over", "fail_back", "made_anew"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile("testdata/" + name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				_, violation := play(t, string(source), Defects{CountTerms: true})
				if violation == nil || violation.Invariant != 2 {
					t.Errorf("got %v; want invariant 2 violated", violation)
				}
			})
		})
	}
}

// play runs a script on a database with defects and returns it with what
// happened, and the first violation.
func play(t *testing.T, source string, defects Defects) (happened string, violation *Violation) {
	script := Script{defects: defects}
	defer func() { violation = script.Close() }()
	var out strings.Builder
	expected := false // within what is to be replaced
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "":
			expected = false
			out.WriteString("\n")
		case expected:
		case strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		case line == "----":
			expected = true
		default:
			happened, err := script.Do(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			out.WriteString(line + "\n----\n" + happened)
			expected = true
		}
	}
	return out.String(), nil
}
