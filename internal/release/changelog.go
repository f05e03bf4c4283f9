package main

import (
	"fmt"
	"regexp"
	"strings"
)

// A release is headed by its version and its day: ## [0.1.0] - 2006-01-02.
var releaseHeading = regexp.MustCompile(`^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$`)

// checkChangelog returns an error unless a changelog has a dated section with
// entries for a version, and no entries that are in no release.
func checkChangelog(text, version string) error {
	name := strings.TrimPrefix(version, "v")
	entries, dates := map[string]int{}, map[string]string{}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if heading := releaseHeading.FindStringSubmatch(line); heading != nil {
			section = heading[1]
			dates[section] = heading[2]
		}
		if strings.HasPrefix(line, "- ") {
			entries[section]++
		}
	}
	switch _, found := dates[name]; {
	case !found:
		return fmt.Errorf("CHANGELOG.md has no section for the version: rename [Unreleased] to [%s] - DATE", name)
	case dates[name] == "":
		return fmt.Errorf("CHANGELOG.md: the section [%s] has no date", name)
	case entries[name] == 0:
		return fmt.Errorf("CHANGELOG.md: the section [%s] has no entries", name)
	case entries["Unreleased"] > 0:
		return fmt.Errorf("CHANGELOG.md: %d entries are still under [Unreleased]: move them to [%s]", entries["Unreleased"], name)
	}
	return nil
}

// changelogSection returns what a changelog has under the heading of a version.
func changelogSection(text, version string) string {
	var section strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		switch heading := releaseHeading.FindStringSubmatch(strings.TrimRight(line, "\r\n")); {
		case heading != nil:
			inside = heading[1] == strings.TrimPrefix(version, "v")
		case inside:
			section.WriteString(line)
		}
	}
	return section.String()
}
