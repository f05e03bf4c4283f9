package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const unreleased = "Unreleased"

// A release is headed by its version and its day: ## [0.1.0] - 2006-01-02.
var releaseHeading = regexp.MustCompile(`^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$`)

var errNoSection = errors.New("no section for the version")

// notesHeading is the heading of the section that becomes the notes of a release: the
// version or, in a trial before its section exists, "Unreleased" with the reason.
func (r release) notesHeading(changelog string) (heading string, reason, err error) {
	err = checkChangelog(changelog, r.version)
	if !r.commit && errors.Is(err, errNoSection) && strings.TrimSpace(changelogSection(changelog, unreleased)) != "" {
		return unreleased, err, nil
	}
	return r.version, nil, err
}

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
		return fmt.Errorf("CHANGELOG.md has %w: rename [Unreleased] to [%s] - DATE", errNoSection, name)
	case dates[name] == "":
		return fmt.Errorf("CHANGELOG.md: the section [%s] has no date", name)
	case entries[name] == 0:
		return fmt.Errorf("CHANGELOG.md: the section [%s] has no entries", name)
	case entries[unreleased] > 0:
		return fmt.Errorf("CHANGELOG.md: %d entries are still under [Unreleased]: move them to [%s]", entries[unreleased], name)
	}
	return nil
}

// changelogSection returns what a changelog has under a heading, such as a version.
func changelogSection(text, headed string) string {
	var section strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		switch heading := releaseHeading.FindStringSubmatch(strings.TrimRight(line, "\r\n")); {
		case heading != nil:
			inside = heading[1] == strings.TrimPrefix(headed, "v")
		case inside:
			section.WriteString(line)
		}
	}
	return section.String()
}
