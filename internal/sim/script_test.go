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

// TestScripts runs the scripts in testdata: blocks of one command and, after a
// line of dashes, what happens because of it.
func TestScripts(t *testing.T) {
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
			synctest.Test(t, func(t *testing.T) { got = play(t, string(source)) })
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

// play runs a script and returns it with what happened.
func play(t *testing.T, source string) string {
	var script Script
	defer func() {
		if violation := script.Close(); violation != nil {
			t.Error(violation)
		}
	}()
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
	return out.String()
}
