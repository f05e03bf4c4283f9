package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// Each suite has a folder with a test that its pattern selects.
func TestSuitesSelectTests(t *testing.T) {
	t.Parallel()
	var all []suite
	for _, s := range servers {
		for _, m := range s.modes {
			all = append(all, m.suites...)
		}
	}
	for _, p := range proxies {
		for _, w := range p.ways {
			all = append(all, w.suites...)
		}
	}
	for _, s := range all {
		files, err := filepath.Glob(filepath.Join("..", "..", s.module, s.folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(s.run, "/")
		selects, found := regexp.MustCompile(first), false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range testName.FindAllSubmatch(text, -1) {
				found = found || selects.Match(name[1])
			}
		}
		if !found {
			t.Errorf("%+v selects no test", s)
		}
	}
}
