package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// server is a database server to test with.
type server struct {
	name  string // as an argument names it
	title string // as the page names it, without the version
	modes []mode
	find  func(ctx context.Context) (installation, error)
}

// installation is a server that was found.
type installation struct {
	title       string   // as messages name it
	version     string   // as in "15.18"
	environment []string // makes the tests use it
}

// mode is a way to hold elections on a server.
type mode struct {
	name   string
	suites []suite
}

// suite is tests of one package.
type suite struct {
	column string // of the table
	module string // folder of the module, from the root of the repository
	folder string // of the package, within the module
	run    string // pattern of -test.run; empty for all
	skip   string // pattern of -test.skip
	count  string // counts only tests with this in their names, if it is set
	long   bool   // chooses itself how many tests run in parallel
}

// columns are the suites of the table.
var columns = []string{"conformance", "backend", "acceptance", "doctor", "managed"}

const program, shared, dialects = "cmd/tenure", "internal/program", "dialects"

var sessions = mode{"sessions", []suite{
	{column: "conformance", module: ".", folder: "postgres", run: "^TestSessionConformsToContract$"},
	{column: "backend", module: ".", folder: "postgres", skip: "^TestSessionConformsToContract$|^TestNodeIsOpenOnSlowServer$|^TestEveryDamageHasAWayOut$"},
	{column: "acceptance", module: ".", folder: "internal/acceptance", skip: "^TestManyMembersComeBackAfterRestart$", long: true},
	{column: "doctor", module: program, folder: "internal/cli", run: "^TestDoctor"},
	{column: "managed", module: ".", folder: "internal/managed"},
}}

// leases are the suites of one kind of database in the tests of leases.
func leases(kind string) mode {
	only := "/^" + kind + "$"
	return mode{"leases", []suite{
		{column: "conformance", module: shared, folder: dialects, run: "^Test(Backend|Store)Conformance$" + only, count: "/" + kind},
		{column: "backend", module: shared, folder: dialects, run: only, skip: "Conformance$|^TestBackendDiagnoseFindsNoFailure$|^TestBackendEveryDamageHasAWayOut$", count: "/" + kind},
		{column: "doctor", module: shared, folder: dialects, run: "^TestBackendDiagnoseFindsNoFailure$" + only, count: "/" + kind},
	}}
}

var servers = []server{
	postgreSQL("14"), postgreSQL("15"), postgreSQL("16"), postgreSQL("17"), postgreSQL("18"),
	{name: "installed", title: "PostgreSQL, installed", modes: []mode{sessions, leases("PostgreSQL"), behindPooler()}, find: installed},
	{name: "mariadb", title: "MariaDB", modes: []mode{leases("MariaDB")}, find: mariaDB},
	{name: "sqlite", title: "SQLite", modes: []mode{leases("SQLite")}, find: sqlite},
}

// behindPooler are leases in transaction mode, which depends on the pooler more
// than on the server.
func behindPooler() mode {
	m := leases("PgBouncer")
	m.name = "leases behind PgBouncer"
	return m
}

// postgreSQL is a version that is downloaded.
func postgreSQL(major string) server {
	return server{name: major, title: "PostgreSQL " + major, modes: []mode{sessions, leases("PostgreSQL")},
		find: func(ctx context.Context) (installation, error) {
			directory, err := output(ctx, ".", "go", "run", "./internal/pgserver/fetch", major)
			if err != nil {
				return installation{}, err
			}
			return found(ctx, "TENURE_PG_BIN="+directory)
		}}
}

// installed is the version that the machine has.
func installed(ctx context.Context) (installation, error) { return found(ctx, "TENURE_PG_BIN=") }

func found(ctx context.Context, variable string) (installation, error) {
	list, err := output(ctx, ".", "env", variable, "go", "run", "./internal/pgserver/which")
	version, _, _ := strings.Cut(list, " ")
	return installation{"PostgreSQL " + version, version, []string{variable}}, err
}

func mariaDB(ctx context.Context) (installation, error) {
	text, err := output(ctx, ".", "env", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "mariadbd", "--no-defaults", "--version")
	version := regexp.MustCompile(`[0-9]+(\.[0-9]+)+`).FindString(text)
	return installation{"MariaDB " + version, version, nil}, err
}

func sqlite(ctx context.Context) (installation, error) {
	version, err := output(ctx, program, "go", "list", "-m", "-f", "{{.Version}}", "modernc.org/sqlite")
	return installation{"SQLite of modernc.org/sqlite " + version, "modernc.org/sqlite " + version, nil}, err
}

// output runs a command and returns what it prints, without space around it.
func output(ctx context.Context, folder, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	command.Stderr = os.Stderr
	interruptible(command)
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// names lists the names of all servers.
func names() []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.name)
	}
	return all
}

// choose returns the servers with the names, all of them if there are none.
func choose(wanted []string) ([]server, error) {
	if len(wanted) == 0 {
		return servers, nil
	}
	byName := map[string]server{}
	for _, s := range servers {
		byName[s.name] = s
	}
	var chosen []server
	for _, name := range wanted {
		s, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("there is no server %q; servers: %s", name, strings.Join(names(), " "))
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}
