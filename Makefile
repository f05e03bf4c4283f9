# Tenure: leader election on PostgreSQL.
#
# Each target does all its own set-up on a machine that has Go.

GO      ?= go
BIN     := $(CURDIR)/bin
MODULES := . adapters/gocron adapters/grpchealth adapters/kubernetes adapters/kafka adapters/nats adapters/watermill adapters/tracing internal/program cmd/tenure server lab

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT         := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tenure/golangci-lint-$(GOLANGCI_LINT_VERSION)-$(shell $(GO) env GOVERSION)

# PG=17 runs a target on a version of PostgreSQL that is downloaded for it.
ifneq ($(PG),)
export TENURE_PG_BIN := $(or $(shell $(GO) run ./internal/pgserver/fetch $(PG)),$(error PostgreSQL $(PG) cannot be downloaded))
endif

# The packages whose tests compare the pages of docs/reference with the code.
REFERENCE := ./metrics ./postgres ./cmd/tenure/internal/cli ./internal/program/config ./internal/program/sidecar

# Starts a program that is terminated when make ends, also when make is killed.
tied = exec $(shell setpriv --pdeathsig TERM true 2>/dev/null && echo setpriv --pdeathsig TERM)

# Builds and runs the command of gates and slices.
gates = @$(GO) build -o $(BIN)/gates ./internal/gates && $(tied) $(BIN)/gates

.DEFAULT_GOAL := help
.PHONY: help demo recording test check deep deep-table lint vet fmt tidy build manual docs docs-check docs-reference pictures bench-failover bench-scale chaos storm chaos-patroni test-matrix test-proxies test-managed test-damages test-observer far-table sim sim-calls model mutants release-check release deb-check clean prerequisites

help: ## print this list
	@echo "Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: ## three nodes on a private PostgreSQL, or SQLite; kill the leader, watch the failover
	@cd cmd/tenure && $(GO) build -o $(BIN)/tenure .
	$(BIN)/tenure demo $(ARGS)

recording: build ## record make demo as the animated pictures of README.md, docs/images/demo-*.svg
	$(BIN)/tenure demo -o json --kill-every 3s >$(BIN)/demo.json
	@set -ex; for colors in light dark; do $(GO) run ./lab/recording -colors $$colors <$(BIN)/demo.json >docs/images/demo-$$colors.svg; done

test: ## the quick tests of the library and the program, on real servers, in minutes (ARGS='-count=1 -v')
	$(gates) -args='$(ARGS)' test

check: ## the gate of a commit: lint, the quick tests, the race detector, the simulator, a failover of each kind
	$(gates) -args='$(ARGS)' check

deep: ## everything else, in slices; SLICE='chaos fuzz' runs some, LIST=1 lists them, LIST=json as JSON, RECORD=1 writes their times to CONTRIBUTING.md
	$(gates) $(if $(RECORD),-record) $(if $(LIST),list $(filter json,$(LIST)),deep $(SLICE))

deep-table: ## rewrite the table of gates and slices in CONTRIBUTING.md
	$(gates) table

# LINTED='. internal/program cmd/tenure server' leaves out modules and packages, which have large dependencies.
LINTED    ?= $(MODULES)
WORKSPACE := $(patsubst ././...,./...,$(patsubst %,./%/...,$(LINTED)))

lint: $(GOLANGCI_LINT) vet ## formatting, tidy modules, go vet, golangci-lint and the words to avoid
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "Not formatted: $$unformatted"; exit 1; }
	@cd lab/release && $(GO) run . tidy
	$(GOLANGCI_LINT) run $(WORKSPACE)
	@$(GO) test -run TestTextsAvoidListedWords ./internal/layout

vet: ## go vet in all modules, on this system
	$(GO) vet $(WORKSPACE)

fmt: ## format all code
	gofmt -w .

tidy: ## go.mod and go.sum of all modules, also while they require a version that is not published
	@cd lab/release && $(GO) run . tidy -write

build: ## the programs, as bin/tenure and bin/tenure-server
	cd cmd/tenure && $(GO) build -o $(BIN)/tenure .
	cd server && $(GO) build -o $(BIN)/tenure-server ./tenure-server

manual: build ## the manual pages, in bin/man
	$(BIN)/tenure manual $(BIN)/man
	$(BIN)/tenure-server manual $(BIN)/man

docs: ## the site of the documents, in dist/site; VERSION=v0.1.0 adds a release, BASE=/tenure/ is the path on the server
	@.ci/prerequisites npm
	$(GO) run ./lab/site -version=$(VERSION) -base=$(or $(BASE),/) $(ARGS)

docs-check: ## build the site of the documents in bin/site and check its links, anchors, titles, search and requests
	@.ci/prerequisites npm
	$(GO) run ./lab/site -out=$(BIN)/site

docs-reference: ## rewrite the generated parts of docs/reference
	TENURE_WRITE_REFERENCE=1 $(GO) test -count=1 -run '^TestReference' $(REFERENCE)

pictures: prerequisites ## take the pictures of incidents in docs/images/incidents, on a machine without other load
	TENURE_TEST_QUIET=1 TENURE_WRITE_PICTURES=1 $(GO) -C server test -count=1 -v -run '^TestFaultsAreShown' ./internal/browser

bench-failover: prerequisites ## time from a fault to the next leader, beside a bare advisory lock, with the causes of slow rounds, and the cost of nodes at rest (ARGS='-rounds=1000 -json=FILE -plot=FILE', PAGE=docs/reference/tested-with.md, ARGS=-h)
	@$(GO) build -o $(BIN)/bench-failover ./lab/failover
	$(tied) $(BIN)/bench-failover $(if $(PAGE),-summary=$(PAGE)) $(ARGS)

bench-scale: prerequisites ## what limits a growing user, each figure beside its limit: openings, crowds of nodes, commits that wake readers, failovers, many processors and roles (ARGS='-short -json=FILE -check=lab/scale/ratios.json', ARGS=-h)
	@$(GO) build -o $(BIN)/bench-failover ./lab/failover
	@$(GO) build -o $(BIN)/bench-scale ./lab/scale
	$(tied) $(BIN)/bench-scale -failover=$(BIN)/bench-failover $(ARGS)

chaos: ## nodes with work under faults of every layer, judged afterwards: DURATION=5m SEED=1 NODES=5 ROLES=20, PG=17 or DSN=…; ARGS=-script=FILE replays (ARGS=-h)
	@.ci/prerequisites $(CHAOS)
	@cd lab/chaos && $(GO) build -o $(BIN)/chaos .
	$(tied) $(BIN)/chaos -duration=$(or $(DURATION),5m) $(if $(SEED),-seed=$(SEED)) -nodes=$(or $(NODES),5) -roles=$(or $(ROLES),20) $(if $(DSN),-dsn='$(DSN)') $(if $(PAGE),-summary=$(PAGE)) $(ARGS)

storm: ## schedules, processors and outbox while nodes, the clock, the log and operators disturb them: DURATION=2h SEED=1
	$(MAKE) --no-print-directory chaos DURATION=$(or $(DURATION),2h) ARGS='-kinds=process,container,clock-jump,work,receiver,drain $(ARGS)'

chaos-patroni: ## failovers under Patroni: FAILOVERS=200, 0 for one of each kind; MODE=sync, KIND=kill, SEED=1 (ARGS=-h)
	@.ci/prerequisites $(PATRONI)
	@$(GO) build -o $(BIN)/chaos-patroni ./lab/patroni
	$(tied) $(BIN)/chaos-patroni -failovers=$(or $(FAILOVERS),200) -mode=$(or $(MODE),both) $(if $(KIND),-kinds=$(KIND)) $(if $(SEED),-seed=$(SEED)) $(if $(PAGE),-summary=$(PAGE)) $(ARGS)

test-matrix: prerequisites ## the suites on PostgreSQL 14 to 18, MariaDB and SQLite, into docs/reference/tested-with.md (ARGS='14 mariadb', ARGS=-h)
	@$(GO) build -o $(BIN)/test-matrix ./lab/matrix
	$(tied) $(BIN)/test-matrix $(ARGS)

test-proxies: ## the suites behind PgBouncer, Pgpool-II, HAProxy and TCP proxies, into docs/reference/tested-with.md (ARGS='pgpool', PG=14)
	@.ci/prerequisites $(PROXIES)
	@$(GO) build -o $(BIN)/test-matrix ./lab/matrix
	$(tied) $(BIN)/test-matrix -proxies $(ARGS)

test-damages: ## every damage to the tables is named and mended by a command (PG=14)
	$(tied) $(GO) test -vet=off -timeout=30m -parallel=8 -run='^TestEveryDamageHasAWayOut$$' ./postgres $(ARGS)

test-managed: ## servers like those of managed services: imposed limits, rotating passwords, full disks (PG=14)
	@.ci/prerequisites
	@$(GO) build -o $(BIN)/test-matrix ./lab/matrix
	$(tied) $(BIN)/test-matrix -tests=internal/managed -- -timeout=20m -parallel=4 $(ARGS)

test-observer: ## compare recorded vacancies, silences and outages with an outside observer: FAULTS=200 of each kind in CLUSTERS=2 clusters (PAGE=docs/reference/tested-with.md)
	@.ci/prerequisites ip:iproute2 setpriv:util-linux
	@$(GO) build -o $(BIN)/test-matrix ./lab/matrix
	$(tied) env TENURE_TEST_OBSERVED_FAULTS=$(or $(FAULTS),200) TENURE_TEST_OBSERVED_CLUSTERS=$(or $(CLUSTERS),2) $(if $(PAGE),TENURE_TEST_OBSERVED_PAGE=$(abspath $(PAGE))) \
		$(BIN)/test-matrix -tests=internal/acceptance -- -run='^TestRecordsAgreeWithObserver$$' -parallel=20 -timeout=0 -v $(ARGS)

far-table: ## time to open, take over, hand over, drain and work on a server that is 0 to 300 ms away (PAGE=docs/reference/tested-with.md)
	@.ci/prerequisites
	$(tied) env $(if $(PAGE),TENURE_TEST_FAR_PAGE=$(abspath $(PAGE))) $(GO) test ./internal/acceptance -run='^TestFarServer$$' -count=1 -v $(ARGS)

sim: ## simulated schedules with random faults, N=2000 of nodes on a server and as many of hosts with an agent, from seed SEED=1; the first in parts that resume with STATE=FILE
	@$(GO) build -o $(BIN)/sim-parts ./lab/sim/parts
	$(tied) $(BIN)/sim-parts -n=$(or $(N),2000) -seed=$(or $(SEED),1) $(if $(STATE),-state=$(STATE)) $(if $(KEEP),-keep) $(if $(PAGE),-page=$(PAGE)) $(ARGS)
	$(tied) $(GO) test ./agent/server -run '^TestSimulatedHosts$$' -count=1 -timeout=0 -v -schedules=$(or $(N),2000) -seed=$(or $(SEED),1)

sim-calls: ## repeat the calls of N=300 simulated schedules, from seed SEED=1, on a real server, and compare the answers
	@mkdir -p $(BIN)
	$(GO) test ./lab/sim -run '^TestCallsAreRecorded$$' -count=1 -v -calls=$(BIN)/sim-calls.gz -schedules=$(or $(N),300) -first-seed=$(or $(SEED),1)
	$(GO) test ./postgres -run '^TestServerAnswersAsTheSimulatedOne$$' -count=1 -v -timeout=20m -calls=$(BIN)/sim-calls.gz

model: ## check the models of the protocol with Spin: every state of each part, and each rule that is broken on purpose (ARGS='-only=reunion -steps')
	@$(GO) build -o $(BIN)/model ./lab/model
	$(tied) $(BIN)/model $(ARGS)

mutants: prerequisites ## break the code line by line and see that tests fail; run it weekly (ARGS='-j 2 postgres:')
	$(GO) run ./lab/mutants $(ARGS)

release-check: ## install the program and build a user's program from this folder, as if VERSION were published
	@cd lab/release && $(GO) run . check -version=$(VERSION)

release: ## the files of a release of VERSION=v0.1.0 in dist/, and a list of its other steps; ARGS=-commit runs them
	@cd lab/release && $(GO) run . tag -version=$(VERSION) $(ARGS)

deb-check: ## install the Debian package of VERSION=v0.1.0 on a clean Debian in memory, use it, remove it, and run lintian; needs root; DEB=dist/….deb checks that file
	@.ci/prerequisites debootstrap lintian unshare:util-linux
	@[ -n "$(DEB)" ] || (cd lab/release && $(GO) run . tag -version=$(or $(VERSION),v0.1.0) -targets=linux/$$($(GO) env GOARCH))
	@exec .ci/deb-check $(or $(DEB),dist/*.deb)

clean: ## remove what was built
	rm -rf $(BIN) dist

# The tests of releases need git, and the test of the unit file needs systemd's checker of units. MariaDB's packages
# contain only programs. The packages of Alertmanager, PgBouncer, Pgpool-II, Patroni and etcd also install services
# where systemd runs; the tests use none of them.
PROXIES := pgbouncer pgpool:pgpool2 haproxy
SERVERS := $(PROXIES) mariadbd:mariadb-server-core mariadb:mariadb-client-core curl python3 psql:postgresql-client
CHAOS := ip:iproute2 faketime
PATRONI := patroni etcd:etcd-server setpriv:util-linux ip:iproute2
prerequisites:
	@.ci/prerequisites git $(SERVERS) $(PATRONI) $(CHAOS) systemd-analyze:systemd chromium npm prometheus-alertmanager

# All clones share it. It takes about a minute of two processors to build.
$(GOLANGCI_LINT):
	@echo "Building golangci-lint $(GOLANGCI_LINT_VERSION), once"
	@mkdir -p $(@D) && build=$$(mktemp -d $(@D)/build-XXXXXX) && \
		GOWORK=off GOBIN=$$build $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) && \
		mv $$build/golangci-lint $@ && rmdir $$build
