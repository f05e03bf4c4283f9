package main

import (
	"slices"
	"strings"
)

// Programs that tests start, as .ci/prerequisites takes them. MariaDB's packages
// contain only programs. The packages of Alertmanager, PgBouncer, Pgpool-II, Patroni
// and etcd also install services where systemd runs; the tests use none of them.
var (
	compiler = []string{"gcc:build-essential"} // for the race detector
	proxies  = []string{"pgbouncer", "pgpool:pgpool2", "haproxy"}
	servers  = append([]string{"git", "faketime", "mariadbd:mariadb-server-core", "mariadb:mariadb-client-core", "curl", "python3", "psql:postgresql-client"}, proxies...)
	network  = []string{"ip:iproute2", "setpriv:util-linux"}
	browser  = append([]string{"chromium", "npm"}, servers...)
)

// Where goroutines carry a promise, the gate of a commit runs the tests with the race
// detector. The packages with the longest tests begin first, so that no processor is
// idle at the end.
var raced = []string{
	"./postgres", "./cluster/...", "./agent/...", "./internal/program/guardian/...", ".", "./processor/...", "./lease/...", "./slots/...",
}

// laboratory are the folders of the laboratory that need little more than the library.
// The gate of a commit includes them, and leaves the others to the slices: they need
// modules that take minutes to compile.
var laboratory = []string{
	"lab/consulbuild", "lab/failover", "lab/matrix", "lab/model", "lab/mutants", "lab/patroni", "lab/recording", "lab/scale", "lab/sim", "lab/site",
}

// inLaboratory are the patterns of their packages.
var inLaboratory = func() (patterns []string) {
	for _, folder := range laboratory {
		patterns = append(patterns, "./"+folder+"/...")
	}
	return patterns
}()

// together is the order of the quick tests in one run: packages that keep the
// processors busy alternate with packages that mostly wait.
var together = append([]string{
	"./cmd/tenure/internal/cli", "./internal/acceptance", "./internal/program/dialects",
	"./internal/program/sidecar", "./lab/sim", "./server/internal/alerts", "./...", "./cmd/tenure/...", "./internal/program/...", "./server/...",
}, inLaboratory...)

// Tests also wait for a server and not only for a processor, so more of them run
// in parallel than there are processors.
var parallel = []string{"-parallel=4"}

// quick is make test.
var quick = part{
	name:   "test",
	proves: "the library and the program work on real servers; long tests are left out",
	needs:  servers,
	steps: []step{{
		title: "quick tests", packages: append([]string{"./postgres", "./cluster"}, together...), short: true, flags: parallel,
	}},
}

// check is the gate of a commit. It builds two graphs of packages: one with the race
// detector, and one without, which go vet, golangci-lint and the other tests share.
var check = part{
	name:   "check",
	proves: "a commit may land",
	needs:  slices.Concat(compiler, servers, network),
	steps: []step{
		{title: "lint", proves: "formatting, tidy modules, words to avoid; go vet and golangci-lint of the library and the programs",
			command: []string{"make", "--no-print-directory", "lint", "LINTED=. internal/program cmd/tenure server " + strings.Join(laboratory, " ")}},
		{title: "quick tests with the race detector", proves: "the packages whose goroutines carry the promise", packages: raced, short: true, race: true, flags: parallel},
		{title: "quick tests without it", proves: "all other packages of the library and the program", packages: together, without: raced, short: true, flags: parallel},
		{title: "simulator", proves: "no violation in 2,000 simulated schedules", command: []string{"go", "run", "./lab/sim/parts", "-n=2000"}},
		{title: "failovers", proves: "one failover of each kind, with real processes", command: []string{"go", "run", "./lab/failover",
			"-rounds=1", "-slow-rounds=1", "-lease=1s", "-roles=100", "-only=sigkill,step-down,hand-over,shutdown,terminate-backend,sigkill-many-roles,sigstop,network-cut,restart-fast,restart-immediate,backend-sigkill"}},
	},
}
