package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// deep are the slices: everything that the gate of a commit leaves out. Each takes at
// most 12 minutes on a slow machine with two processors. make deep runs them in this
// order, and consecutive runs of .ci/run take one each.
var deep = slices.Concat([]part{
	{
		name: "core-race", proves: "races in the engine and in everything that it runs under it, long tests too", needs: slices.Concat(compiler, servers, network),
		steps: append(
			replayed("core-race", step{title: "all tests", packages: []string{"./cluster/...", "./agent/...", ".", "./processor/...", "./lease/...", "./slots/..."}, race: true, flags: parallel, skip: timed}),
			step{title: "times of programs", packages: []string{"./cluster/..."}, run: timed},
		),
	},
	{
		name: "postgres-race", proves: "races in the protocol on PostgreSQL, long tests too", needs: slices.Concat(compiler, servers, network),
		steps: []step{{title: "all tests", packages: []string{"./postgres/..."}, race: true, flags: parallel, skip: slowServer + "|" + damages}},
	},
	{
		name: "damages", proves: "each way to damage the tables is named and mended by a command", needs: servers,
		steps: []step{{title: "its test", packages: []string{"./postgres"}, run: damages, flags: []string{"-parallel=8"}}},
	},
	damagesOn("14"), damagesOn("18"),
	{
		name: "damages-leases", proves: "each way to damage the tables of leases is named and mended by a command", needs: servers,
		steps: []step{{title: "its test", packages: []string{"./internal/program/dialects"}, run: damagesOfLeases}},
	},
	{
		name: "sidecar", proves: "the example beside a sidecar never overlaps, whatever happens to the sidecar", needs: servers,
		steps: []step{{title: "its test", packages: []string{"./examples"}, run: besideSidecar}},
	},
	{
		name: "slow-server", proves: "nodes reach a server that answers each connection after 6, 20 and 50 s; 200 come back after a restart", needs: servers,
		steps: []step{
			{title: "the restart", packages: []string{"./internal/acceptance"}, run: comeBack},
			{title: "slow answers", packages: []string{"./postgres"}, run: slowServer, flags: []string{"-parallel=8"}},
		},
	},
	{
		name: "hostile-server", proves: "no answer of a server harms a node, its watch, an agent or a reader", needs: servers,
		steps: []step{
			{title: "all tests", packages: []string{"./internal/hostile"}},
			{title: "1,000,000 damaged answers, from a new seed", command: []string{"go", "test", "./internal/hostile", "-run=^TestHostileServerHarmsNoClient$", "-count=1", "-v", "-timeout=60m", "-damages=1000000", fmt.Sprintf("-seed=%d", time.Now().Unix())}},
		},
	},
	{
		name: "library-race", proves: "races in all other packages of the library", needs: slices.Concat(compiler, servers, network),
		steps: []step{{title: "all tests", packages: []string{"./...", "./lab/matrix/...", "./lab/model/...", "./lab/recording"}, race: true, flags: parallel, without: slices.Concat(raced, []string{
			"./internal/acceptance", "./internal/managed", "./internal/layout", "./internal/hostile", "./internal/observer", "./examples/...", "./deploy/...",
		})}},
	},
	{
		name: "program-race", proves: "races in the program", needs: slices.Concat(compiler, servers, network),
		steps: []step{{title: "all tests", packages: []string{"./cmd/tenure/...", "./internal/program/...", "./server/..."}, race: true, flags: parallel, without: []string{
			"./cmd/tenure/internal/cli", "./internal/program/dialects", "./server/internal/browser",
		}}},
	},
	{
		name: "acceptance", proves: "clusters of real processes keep the invariants under faults", needs: slices.Concat(servers, network),
		steps: replayed("acceptance", step{title: "all tests", packages: []string{"./internal/acceptance"}, flags: parallel, skip: comeBack}),
	},
	{
		name: "command", proves: "the commands do what their pages say", needs: servers,
		steps: []step{{title: "all tests", packages: []string{"./cmd/tenure/internal/cli"}, flags: parallel, skip: besideConsul}},
	},
	{
		name: "dialects", proves: "leases on SQLite, MariaDB and behind poolers", needs: servers,
		steps: replayed("dialects", step{title: "all tests", packages: []string{"./internal/program/dialects"}, flags: parallel, skip: damagesOfLeases}),
	},
	{
		name: "browser", proves: "the dashboard in a real browser: accessibility, keyboard, incidents, ten tasks of an operator", needs: browser,
		steps: []step{
			{title: "all tests", packages: []string{"./server/internal/browser"}, flags: parallel, skip: geometry + "|" + operatorTasks},
			{title: "ten tasks of an operator", packages: []string{"./server/internal/browser"}, run: operatorTasks},
		},
	},
	{
		name: "geometry", proves: "no page hides, cuts or overlaps anything, on a broken cluster, at five widths", needs: browser,
		steps: []step{{title: "its test", packages: []string{"./server/internal/browser"}, run: geometry}},
	},
	{
		name: "release", proves: "a release can be installed and built upon; the Debian package works on a clean system", needs: []string{"git"},
		steps: []step{
			{title: "tests of the release tool", packages: []string{"./lab/release/..."}},
			{title: "installation from empty caches", command: []string{"make", "release-check"}},
			{title: "the Debian package", command: []string{"make", "deb-check"}},
		},
	},
	{
		name: "documents", proves: "links, examples of code and figures of the documents", needs: slices.Concat([]string{"npm"}, servers),
		steps: []step{
			{title: "layout and site", packages: []string{"./internal/layout", "./lab/site"}},
			{title: "the site of the documents", command: []string{"make", "docs-check"}},
		},
	},
	{
		name: "deployments", proves: "examples, adapters, manifests and the tools of the laboratory", needs: slices.Concat(servers, patroni, []string{"systemd-analyze:systemd", "prometheus-alertmanager"}),
		steps: []step{
			{title: "examples and adapters", packages: []string{
				"./examples/...", "./adapters/gocron/...", "./adapters/grpchealth/...", "./adapters/kubernetes/...", "./lab/recipes/...",
				"./adapters/kafka/...", "./adapters/nats/...", "./adapters/watermill/...", "./adapters/tracing/...", "./deploy/generate/...",
			}, flags: parallel, skip: besideSidecar},
			{title: "manifests", packages: []string{"./lab/validate"}},
			{title: "the laboratory", packages: []string{"./lab/failover", "./lab/patroni", "./lab/scale", "./lab/chaos/...", "./lab/mutants"}, flags: parallel},
		},
	},
	{
		name: "lint", proves: "go vet and golangci-lint of all modules",
		steps: []step{{title: "all modules", command: []string{"make", "--no-print-directory", "lint"}}},
	},
	{
		name: "portability", proves: "the code compiles on Windows and macOS, and the list of tests is complete",
		steps: []step{
			{title: "go vet for Windows", env: []string{"GOOS=windows"}, command: vetted},
			{title: "go vet for macOS", env: []string{"GOOS=darwin"}, command: vetted},
			{title: "go test -list agrees with the list of the gates", command: []string{"go", "run", "./internal/gates", "compare"}},
		},
	},
	{
		name: "managed", proves: "servers like those of managed services: imposed limits, rotating passwords, full disks", needs: slices.Concat(servers, network),
		steps: []step{{title: "all tests", packages: []string{"./internal/managed"}, flags: parallel}},
	},
	{
		name: "consul", proves: "the commands of the page on Consul, beside a real one", needs: servers,
		steps: []step{
			{title: "build Consul", command: []string{"go", "run", "./lab/consulbuild", "bin/consul"}},
			{title: "its tests", packages: []string{"./cmd/tenure/internal/cli"}, run: besideConsul, env: []string{"PATH=" + filepath.Join(here(), "bin") + ":" + os.Getenv("PATH")}, strict: true},
		},
	},
	{
		name: "alerts", proves: "a week of evaluations, and a storm of alerts",
		steps: []step{
			{title: "a week", env: []string{"TENURE_TEST_WEEK=1"}, packages: []string{"./server/internal/alerts"}, run: "^TestRulesFireOverOneWeek$"},
			{title: "a storm", env: []string{"TENURE_TEST_STORM=1"}, packages: []string{"./server/internal/alerts"}, run: "^TestStormIsSentInFewMessages$"},
		},
	},
	{
		name: "benchmarks", proves: "every benchmark runs", needs: servers,
		steps: []step{
			benchmark("all but those of clusters", ".", "./...", "./cmd/tenure/...", "./internal/program/...", "./server/...", "./adapters/nats/..."),
			benchmark("a cluster at rest", "InFlight|NodesAtRest/nodes=3/roles=0", "./cluster"),
			benchmark("a storm", "BareStorm|SharedRoles|Cluster/20", "./internal/acceptance"),
		},
	},
	{
		name: "fuzz-library", proves: "parsers of the library survive a minute of random input each",
		steps: fuzzTargets(false),
	},
	{
		name: "fuzz-program", proves: "parsers of the program survive a minute of random input each",
		steps: fuzzTargets(true),
	},
	{
		name: "simulator", proves: "20,000 simulated schedules of nodes, 5,000 of hosts with an agent, and all tests of the simulator",
		steps: []step{
			{title: "all tests", packages: []string{"./lab/sim/..."}},
			{title: "20,000 schedules from a new seed", command: []string{"go", "run", "./lab/sim/parts", "-n=20000", fmt.Sprintf("-seed=%d", time.Now().Unix())}},
			{title: "5,000 schedules of hosts with an agent, from a new seed", command: []string{"go", "test", "./agent/server", "-run=^TestSimulatedHosts$", "-count=1", "-v", "-schedules=5000", fmt.Sprintf("-seed=%d", time.Now().Unix())}},
		},
	},
	{
		name: "simulated-calls", proves: "a real server answers the calls of 300 simulated schedules, from a new seed, as the simulated one does", needs: servers,
		steps: []step{{title: "record and repeat", command: []string{"make", "--no-print-directory", "sim-calls", "N=300", fmt.Sprintf("SEED=%d", time.Now().Unix())}}},
	},
	{
		name: "model", proves: "no state of the protocol's models violates an invariant, and each rule that is broken on purpose is refuted", needs: compiler,
		steps: []step{{title: "all parts and variants", command: []string{"make", "--no-print-directory", "model"}}},
	},
	{
		name: "failover", proves: "failovers take no longer than a multiple of a bare advisory lock's",
		steps: []step{{title: "50 rounds of each kind", command: []string{"make", "bench-failover", "ARGS=-check -rounds=50 -only=sigkill,step-down,hand-over,shutdown"}}},
	},
	{
		name: "scale", proves: "no cost has become worse by a third, beside its limit in the same run",
		steps: []step{{title: "the short table", command: []string{"make", "bench-scale", "ARGS=-short -only=opening,commits,processors,benchmarks,crowds -rounds=7 -length=1s -writers=1,8,32 -nodes=3,20 -settle=10s -rest=15s -check=lab/scale/ratios.json"}}},
	},
	{
		name: "chaos", proves: "no invariant is violated under faults of every layer, from a new seed",
		steps: []step{{title: "five minutes", command: []string{"make", "chaos", "DURATION=5m"}}},
	},
	{
		name: "storm", proves: "work keeps its word while nodes, the clock, the log and operators disturb it, from a new seed",
		steps: []step{{title: "four minutes", command: []string{"make", "storm", "DURATION=4m"}}},
	},
	{
		name: "patroni-sync", proves: "failovers under Patroni with synchronous replication",
		steps: []step{{title: "one of each kind", command: []string{"make", "chaos-patroni", "FAILOVERS=0", "MODE=sync"}}},
	},
	{
		name: "patroni-async", proves: "failovers under Patroni with asynchronous replication",
		steps: []step{{title: "one of each kind", command: []string{"make", "chaos-patroni", "FAILOVERS=0", "MODE=wait"}}},
	},
	{
		name: "patroni-haproxy", proves: "failovers under Patroni behind HAProxy",
		steps: []step{{title: "one of each kind", command: []string{"make", "chaos-patroni", "FAILOVERS=0", "MODE=haproxy"}}},
	},
	{
		name: "observer", proves: "recorded vacancies, silences and outages agree with an outside observer's",
		steps: []step{{title: "20 faults of each kind", command: []string{"make", "test-observer", "FAULTS=20"}}},
	},
	{
		name: "shown", proves: "each figure and sentence that is shown agrees with what an outside observer caused and saw", needs: servers,
		steps: []step{{title: "its test", packages: []string{"./internal/observer"}, flags: parallel}},
	},
}, versions("14", "16", "17", "18", "mariadb sqlite"), behindProxies("pgbouncer", "pgpool", "haproxy"), brokenCode(mutantParts))

// vetted is go vet of what the programs and the gate of a commit need.
var vetted = append([]string{"go", "vet", "./...", "./cmd/tenure/...", "./internal/program/...", "./server/..."}, inLaboratory...)

// damages is a test with a database for each of some hundred damages.
const damages = "^TestEveryDamageHasAWayOut$"

// damagesOn is a slice that runs this test on another version of PostgreSQL.
func damagesOn(version string) part {
	return part{
		name: "damages-" + version, proves: "the same on PostgreSQL " + version,
		steps: []step{{title: "its test", command: []string{"make", "--no-print-directory", "test-damages", "PG=" + version}}},
	}
}

// damagesOfLeases is a test with a database for each of some hundred damages.
const damagesOfLeases = "^TestBackendEveryDamageHasAWayOut$"

// timed are tests whose limits are those of programs without the race detector.
const timed = "^(TestTenThousandRolesAreSharedWithinTenSeconds|TestLargePlanIsFast)$"

// besideSidecar is a test with 250 faults of a sidecar.
const besideSidecar = "^TestSidecarExampleNeverOverlaps$"

// geometry is a test that opens each page at each width.
const geometry = "^TestPagesKeepTheirGeometry$"

// operatorTasks is a test that does what operators do, on the page and in the terminal.
const operatorTasks = "^TestOperatorDoesTenTasks$"

// besideConsul are the tests that start Consul.
const besideConsul = "Consul"

// slowServer is a test that waits for minutes.
const slowServer = "^TestNodeIsOpenOnSlowServer$"

// comeBack is a test that uses both processors for a minute.
const comeBack = "^TestManyMembersComeBackAfterRestart$"

var patroni = append([]string{"patroni", "etcd:etcd-server"}, network...)

// benchmark is a step that runs benchmarks once. Those of ./cluster and of
// ./internal/acceptance run only if the packages name them: some take minutes.
func benchmark(title, pattern string, packages ...string) step {
	s := step{title: title, env: []string{"TENURE_TEST_EVENTS=2000"}, run: "^$", flags: []string{"-bench=" + pattern, "-benchtime=1x"}, packages: packages}
	if pattern == "." {
		s.without = []string{"./cluster", "./internal/acceptance"}
	}
	return s
}

// replayed is a step that stores the steps of nodes and agents in its tests, and one that
// checks that the models allow them.
func replayed(name string, s step) []step {
	folder := filepath.Join(here(), "bin", "steps", name)
	s.env = append(s.env, "TENURE_TEST_STEPS="+folder)
	s.flags = slices.Concat(s.flags, []string{"-count=1"}) // a cached test stores nothing
	return []step{s, {title: "the models allow the steps of its nodes", command: []string{"go", "run", "./lab/model", "-replay=" + folder}}}
}

// here returns the root of the repository, or nothing outside of it.
func here() string {
	root, err := repository()
	if err != nil {
		return ""
	}
	return root
}

// versions are slices that run the suites of the matrix on servers.
func versions(names ...string) []part {
	var parts []part
	for _, name := range names {
		for _, half := range []struct{ name, suites string }{{"backend", "backend"}, {"clusters", "conformance,acceptance,doctor,managed"}} {
			p := part{name: "server-" + strings.ReplaceAll(name, " ", "-") + "-" + half.name, proves: "the suites on " + name + ": " + half.suites}
			p.steps = []step{{title: "suites", command: []string{"make", "test-matrix", "ARGS=-page= -suites=" + half.suites + " " + name}}}
			parts = append(parts, p)
		}
	}
	return parts
}

// behindProxies are slices that run the suites behind proxies.
func behindProxies(names ...string) []part {
	var parts []part
	for _, name := range names {
		p := part{name: "proxy-" + name, proves: "the suites behind " + name}
		p.steps = []step{{title: "suites", command: []string{"make", "test-proxies", "ARGS=-page= " + name}}}
		parts = append(parts, p)
	}
	return parts
}

// mutantParts is the number of slices that break the code. Each breaks about 30 lines.
const mutantParts = 19

func brokenCode(count int) []part {
	var parts []part
	for i := range count {
		p := part{name: fmt.Sprintf("mutants-%02d", i+1), proves: "tests notice broken lines of the code", needs: servers}
		p.steps = []step{{title: "about 30 lines", command: []string{"go", "run", "./lab/mutants", "-j=2", fmt.Sprintf("-part=%d/%d", i+1, count)}}}
		parts = append(parts, p)
	}
	return parts
}
