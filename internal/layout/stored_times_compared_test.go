package layout

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What in the sources is the database's clock, and how times are compared with it.
const (
	clockWord = `(?:1000000 \* extract\(epoch FROM (?:clock|statement)_timestamp\(\)\)|\(?(?:clock|statement)_timestamp\(\)|\{now\}|\{clock\}|\bmoment\b)`
	compares  = `(?:[<>]=?|-|(?:NOT )?BETWEEN)`
)

var (
	// Columns, variables and results of the type that a time has.
	timeColumns = regexp.MustCompile(`(?m)^\s+(\w+)(?: constant)? timestamptz\b|\{"(\w+)", "\{time type\}|\b(\w+_(?:at|until|seen|heartbeat|since)) bigint\b|interval '1 millisecond' AS (\w+_until),`)
	// Times of rows that Go compares with the clock that was read with the row.
	comparedInGo = regexp.MustCompile(`\b(\w+)(?:\.Int64)? ?[-<>]=? ?(?:max\()?\w+\.now\b|\.(ActiveAt)\.Before\(now\)`)
	// Sources of schedules, and of the laboratory.
	othersTimes = regexp.MustCompile(`^(cron|lab)/`)
	readsClock  = regexp.MustCompile(clockWord + `|\.now\b|ActiveAt`)
	spaces      = regexp.MustCompile(`\s+`)
)

// comparisons are the patterns that find such a comparison. Their group is the time.
func comparisons(columns []string) []*regexp.Regexp {
	column := `\b(` + strings.Join(columns, "|") + `)\b`
	return []*regexp.Regexp{
		regexp.MustCompile(column + "[^,;=<>`]{0,90}?" + compares + " ?" + clockWord),
		regexp.MustCompile(clockWord + " ?" + compares + " ?[^,;=<>`]{0,60}?" + column),
		regexp.MustCompile(column + " (?:NOT )?BETWEEN [^;=<>`]{0,60}?" + clockWord),
	}
}

// comparedTimes returns the times of a source that patterns find.
func comparedTimes(source string, patterns ...*regexp.Regexp) []string {
	var found []string
	for _, pattern := range patterns {
		for _, match := range pattern.FindAllStringSubmatch(spaces.ReplaceAllString(source, " "), -1) {
			found = append(found, strings.Join(match[1:], ""))
		}
	}
	return found
}

// A statement that compares another time with the clock must say what a clock that was
// ahead does to it.
func TestStoredTimesHaveRules(t *testing.T) {
	sources, known := map[string]string{}, map[string]bool{}
	for _, extension := range []string{".go", ".sql"} {
		walk(t, extension, func(path string) error {
			file, err := filepath.Rel(root, path)
			if err != nil || strings.HasSuffix(file, "_test.go") || othersTimes.MatchString(filepath.ToSlash(file)) {
				return err
			}
			source := readFile(t, file)
			for _, match := range timeColumns.FindAllStringSubmatch(source, -1) {
				known[strings.Join(match[1:], "")] = true
			}
			if readsClock.MatchString(source) {
				sources[file] = source
			}
			return nil
		})
	}
	columns := slices.SortedFunc(maps.Keys(known), func(a, b string) int { return len(b) - len(a) })
	patterns, found := comparisons(columns), map[string]bool{}
	for file, source := range sources {
		folder := filepath.ToSlash(filepath.Dir(file))
		folder = regexp.MustCompile(`^postgres/internal/.*`).ReplaceAllString(folder, "postgres")
		names := comparedTimes(source, patterns...)
		if folder == "lease" || strings.HasSuffix(folder, "alerts") {
			names = append(names, comparedTimes(source, comparedInGo)...)
		}
		for _, name := range names {
			found[folder+" "+name] = true
		}
	}
	tests := testNames(t)
	for _, row := range storedTimes {
		key := row.folder + " " + row.column
		if !found[key] {
			t.Errorf("%s: no statement compares it with the clock", key)
		}
		delete(found, key)
		if row.test != "" && !tests[row.test] {
			t.Errorf("%s: there is no test %s", key, row.test)
		}
	}
	for key := range found {
		t.Errorf("%s is compared with the database's clock and has no rule for a clock that was ahead: see storedTimes", key)
	}
}

// The patterns find what the statements of this repository look like.
func TestComparedTimesAreFound(t *testing.T) {
	patterns := comparisons([]string{"next_attempt_at", "ended_at", "until"})
	for source, want := range map[string]string{
		"WHERE next_attempt_at <= clock_timestamp()":                                   "next_attempt_at",
		"n.until + n.lease_ms * interval '1 millisecond'\n    > clock_timestamp()":     "until",
		"clock_timestamp() - p.ended_at":                                               "ended_at",
		"until NOT BETWEEN {now} - 60 AND {now} + 60":                                  "until",
		"ended_at < {now} - ?":                                                         "ended_at",
		"SET ended_at = clock_timestamp(), until = clock_timestamp() + interval '1 s'": "",
	} {
		got := slices.Compact(comparedTimes(source, patterns...))
		if strings.Join(got, " ") != want {
			t.Errorf("%q compares %q, want %q", source, got, want)
		}
	}
}
