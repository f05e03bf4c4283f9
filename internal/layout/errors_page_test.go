package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const errorsPage = "docs/reference/errors.md"

var (
	exportedError = regexp.MustCompile(`(?m)^\s*(?:var )?(Err[A-Z]\w*)\s*=`)
	logRow        = regexp.MustCompile("(?m)^\\| ([`][^|]*) \\| (?:debug|info|warn|error)")
	inCode        = regexp.MustCompile("`([^`]+)`")
)

// errorFolders are the packages whose exported errors the page lists.
var errorFolders = []string{".", "dberr", "postgres", "lease", "cluster", "cron", "processor", "outbox", "eventstore", "view", "assign"}

// The page of errors lists every exported error of the library's packages.
func TestErrorsAreListed(t *testing.T) {
	page := readPage(t, errorsPage)
	var found [][]string
	for _, s := range readSources(t) {
		if !s.isTest() && slices.Contains(errorFolders, s.folder) {
			found = append(found, exportedError.FindAllStringSubmatch(readPage(t, filepath.Join(s.folder, s.name)), -1)...)
		}
	}
	if len(found) < 50 {
		t.Fatalf("only %d errors were found: the test looks in the wrong place", len(found))
	}
	for _, match := range found {
		if !strings.Contains(page, "`"+match[1]+"`") {
			t.Errorf("%s does not list %s", errorsPage, match[1])
		}
	}
}

// The log lines of the page exist in the code.
func TestListedLogLinesExist(t *testing.T) {
	var code strings.Builder
	for _, s := range readSources(t) {
		if s.isTest() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, s.folder, s.name))
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	checked := 0
	for _, row := range logRow.FindAllStringSubmatch(readPage(t, errorsPage), -1) {
		for _, message := range inCode.FindAllStringSubmatch(row[1], -1) {
			checked++
			if !regexp.MustCompile(`"` + regexp.QuoteMeta(message[1]) + `[":;]`).MatchString(code.String()) {
				t.Errorf("%s lists the log line %q, which no code writes", errorsPage, message[1])
			}
		}
	}
	if checked < 25 {
		t.Fatalf("only %d log lines were found: the test looks in the wrong place", checked)
	}
}
