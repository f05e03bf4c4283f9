package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// BinariesVariable names the environment variable that says where to look for
// the server's programs before all other places: directories with initdb and
// postgres in them, separated like those of PATH.
const BinariesVariable = "TENURE_PG_BIN"

// ErrNotInstalled means that no PostgreSQL server of the wanted version was
// found. The message says how to get one.
var ErrNotInstalled = errors.New("no PostgreSQL server found on this machine")

// usualPlaces are where distributions put the server's programs.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // PostgreSQL's own RPMs
	"/usr/lib/postgresql*/bin",                           // SUSE
	"/usr/libexec/postgresql*",                           // Alpine
	"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew on Apple silicon
	"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/usr/local/pgsql/bin",                               // built from source
}

// Installation is one set of server programs.
type Installation struct {
	Bin     string // the directory of initdb, postgres and pg_basebackup
	Version string // as in "15.18"
	Major   int
}

// Installations lists what this machine has, one for each major version: first
// what [BinariesVariable] names in its order, then the usual places with the
// newest version first.
func Installations() []Installation {
	var found []Installation
	add := func(directories []string) {
		for _, directory := range directories {
			installation, ok := inspect(directory)
			if ok && !slices.ContainsFunc(found, installation.sameMajor) {
				found = append(found, installation)
			}
		}
	}
	add(filepath.SplitList(os.Getenv(BinariesVariable)))
	named := len(found)

	for _, pattern := range usualPlaces {
		matches, _ := filepath.Glob(pattern) // the patterns are well-formed
		add(matches)
	}
	add(fromPath())
	slices.SortStableFunc(found[named:], func(a, b Installation) int { return b.Major - a.Major })
	return found
}

// Find returns the installation of a major version such as "17", or the first
// of [Installations] if version is empty.
func Find(version string) (Installation, error) {
	installations := Installations()
	for _, installation := range installations {
		if version == "" || version == strconv.Itoa(installation.Major) {
			return installation, nil
		}
	}
	if version != "" && len(installations) > 0 {
		return Installation{}, fmt.Errorf("%w: version %s is wanted; on Debian run: apt-get install postgresql-%s, or name its bin directory in %s",
			ErrNotInstalled, version, version, BinariesVariable)
	}
	return Installation{}, fmt.Errorf("%w; on Debian and Ubuntu run: apt-get install postgresql, elsewhere name its bin directory in %s",
		ErrNotInstalled, BinariesVariable)
}

func (i Installation) sameMajor(other Installation) bool { return i.Major == other.Major }

func (i Installation) program(name string) string { return filepath.Join(i.Bin, name) }

// inspected caches the results of inspect by directory: each test server asks, and the
// answer costs another process. After an upgrade of a server's programs, the cache still
// has their old version until this process ends.
var inspected sync.Map

// inspect reports whether a directory holds a server's programs.
func inspect(directory string) (Installation, bool) {
	if _, err := os.Stat(filepath.Join(directory, "initdb")); err != nil {
		return Installation{}, false
	}
	if installation, ok := inspected.Load(directory); ok {
		return installation.(Installation), true
	}
	output, err := exec.Command(filepath.Join(directory, "postgres"), "--version").Output()
	if err != nil {
		return Installation{}, false
	}
	version, major, ok := parseVersion(string(output))
	if !ok {
		return Installation{}, false
	}
	installation := Installation{Bin: directory, Version: version, Major: major}
	inspected.Store(directory, installation)
	return installation, true
}

// parseVersion reads "postgres (PostgreSQL) 15.18 (Debian 15.18-1)" and, of
// servers before their release, "postgres (PostgreSQL) 19beta1".
func parseVersion(output string) (version string, major int, ok bool) {
	_, rest, ok := strings.Cut(output, "(PostgreSQL) ")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return "", 0, false
	}
	digits := fields[0]
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	major, err := strconv.Atoi(digits)
	return fields[0], major, err == nil
}

// fromPath finds the programs through PATH. Some distributions put pg_config
// there but not the server, and some link initdb from elsewhere.
func fromPath() []string {
	var directories []string
	if program, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(program); err == nil {
			directories = append(directories, filepath.Dir(resolved))
		}
	}
	if program, err := exec.LookPath("pg_config"); err == nil {
		if output, err := exec.Command(program, "--bindir").Output(); err == nil {
			directories = append(directories, strings.TrimSpace(string(output)))
		}
	}
	return directories
}

// Versions lists the major versions of [Installations].
func Versions() []string {
	var majors []string
	for _, installation := range Installations() {
		majors = append(majors, strconv.Itoa(installation.Major))
	}
	return majors
}
