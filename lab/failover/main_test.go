package main

import (
	"os"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "child-") {
		main()
		return
	}
	pgtest.Main(m)
}

func TestOptionsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"-rounds=2":                    "",
		"-plot=p.svg -from=r.json":     "",
		"-summary=p.md -from=r.json":   "",
		"-rounds=0":                    "at least 1",
		"-slow=0s":                     "positive",
		"-rest=0s":                     "positive",
		"-crowd=-1":                    "must not be negative",
		"-from=r.json":                 "-from needs -plot",
		"-from=r.json -plot=p -json=j": "-from makes no run",
		"-rounds=2 x":                  "unexpected argument",
	} {
		var printed strings.Builder
		_, err := parseFlags(strings.Fields(args), &printed)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(printed.String(), want)) {
			t.Errorf("%s: got %v and the output %q, want %q", args, err, printed.String(), want)
		}
	}
}
