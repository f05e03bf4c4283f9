//go:build unix

package cli

// Reasons why blocks cannot run here.
const (
	noShell   = "it is no shell, but a statement, a setting or a formula"
	tutorial  = "TestTutorialOfCommandsRuns runs the steps of the tutorial in their order"
	examples  = "it is a step of the tutorial whose programs are tested in the folder examples"
	published = "it needs a published version: lab/release installs the program as if there were one"
	elsewhere = "it needs what a test machine lacks: "
)

// ownCertificate makes the files of a server with TLS.
const ownCertificate = `openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out tls.pem -days 1 -subj /CN=localhost 2>/dev/null
chmod 600 key.pem`

// appUser makes the user that the documents give rights to.
const appUser = `psql -q "$DATABASE_URL" -c "DO 'BEGIN CREATE ROLE app; EXCEPTION WHEN duplicate_object OR unique_violation THEN END'"`

// backupAtNoon adds a schedule that no program declares.
const backupAtNoon = "tenure cron add backup-noon --job backup --expr '0 12 * * *'"

// plans are how blocks run that need more than what every block gets, or why they do not run. The
// key is the first line of the block, or its whole text.
var plans = map[string]plan{
	// Installations and tutorials
	"make demo   # three nodes on a private PostgreSQL, or SQLite; the leader is killed every few seconds":                            {skip: "make demo has its own tests, and make test runs this test"},
	"go install github.com/exactly-one/tenure/cmd/tenure@latest   # or, in this folder: make build && export PATH=\"$PWD/bin:$PATH\"": {skip: published},
	"go install github.com/exactly-one/tenure/cmd/tenure@latest":                                                                      {skip: published},
	"go get github.com/exactly-one/tenure@latest":                                                                                     {skip: published},
	"#!/bin/sh": {skip: tutorial},
	"tenure run --name one --role reports --log-level error -- ./report.sh":                          {skip: tutorial},
	"tenure run --name two --role reports --log-level error -- ./report.sh":                          {skip: tutorial},
	"kill -9 $(pgrep -f '^tenure run --name one ')":                                                  {skip: tutorial},
	"kill -STOP $(pgrep -f '^tenure run --name one ')":                                               {skip: tutorial},
	"kill -CONT $(pgrep -f '^tenure run --name one ')":                                               {skip: tutorial},
	"docker run --rm -d --name tenure-tutorial -p 5432:5432 -e POSTGRES_PASSWORD=secret postgres:18": {skip: elsewhere + "Docker"},
	"mkdir billing && cd billing":                                                                    {skip: published},
	"go mod tidy":                                                                                    {skip: examples},
	"./billing":                                                                                      {skip: examples},
	"pkill -9 -o -x billing":                                                                         {skip: examples},
	"pkill -STOP -o -x billing      # -n instead of -o if the newer one leads":                       {skip: examples},
	"pkill -CONT -x billing":                                                                         {skip: examples},
	`psql "$DATABASE_URL" -c 'SELECT term, count(*), min(written), max(written) FROM invoices GROUP BY term ORDER BY term'`: {skip: examples},
	`psql "$DATABASE_URL" -c 'DROP TABLE invoices'`: {skip: examples},

	// Coming from another system
	"# before": {skip: "TestConsulMoveInTwoReleases runs its commands if there is a consul"},
	"kubectl patch cronjob nightly -p '{\"spec\":{\"suspend\":true}}'":      {skip: elsewhere + "Kubernetes"},
	"tenure run --dsn postgres://app@db/app --role billing=42 -- ./billing": {until: "works|vacant", bare: true},

	// Statements, settings and formulas
	"trust ends → the work's context is canceled → the work returns → the lock is released → the others are notified": {skip: noShell},
	"a node sends a heartbeat at t, gets the answer   →   trusts until t + Lease − Margin":                            {skip: noShell},
	"go test ./lab/sim -run TestReplayPrints -args -seed=1 -steps=/tmp/steps":                                         {skip: elsewhere + "the repository"},
	"make bench-scale ARGS='-only crowds -nodes 3,50,200'":                                                            {skip: elsewhere + "the repository"},
	"greatest(previous number + 1, milliseconds since 1970 on the database's clock)":                                  {skip: noShell},
	"max_locks_per_transaction ≥ 2 × (roles + 2 × nodes + others) ÷ (max_connections + max_prepared_transactions)":    {skip: noShell},
	"postgres://app@db1:5432,db2:5432/app":                                                                            {skip: noShell},
	"ALTER SYSTEM SET default_transaction_read_only = on;":                                                            {skip: noShell},
	"ALTER SYSTEM RESET default_transaction_read_only;":                                                               {skip: noShell},
	"synchronous_mode: true":                     {skip: noShell},
	"synchronous_standby_names = 'ANY 2 (a, b)'": {skip: noShell},
	"watchdog:": {skip: noShell},
	"postgres://app@pg1,pg2,pg3/app?target_session_attrs=read-write&connect_timeout=2": {skip: noShell},
	"defaults":              {skip: noShell},
	"patronictl switchover": {skip: elsewhere + "Patroni, which make chaos-patroni starts"},

	// How-to guides
	"sha256sum --check --ignore-missing SHA256SUMS   # in the folder with the downloaded files":                 {skip: elsewhere + "the files of a release, which lab/release tests"},
	"docker build --file deploy/docker/Dockerfile --tag tenure .   # --target command leaves out tenure-server": {skip: elsewhere + "Docker"},
	"tenure run --role billing --priority 10 --label zone=a --prefer zone=a --take-over-after 1m -- ./billing":  {until: "works"},
	"tenure run --dsn postgres://app@db/app --role worker --slots 3 -- ./worker":                                {until: "works"},
	"tenure status                                        # every slot is a role":                               {skip: "which node has room for a slot is not known in advance"},
	"tenure run --password-command 'aws rds generate-db-auth-token …' --role billing -- ./billing":              {until: "works"},
	`tenure migrate --dsn "$OWNER_DSN"`:                                                                                     {setup: appUser},
	"tenure run --role billing --listen :8080 --token-file token --settle 5.2s":                                             {skip: "a guard needs the node, which the stage would start on the same port: TestSidecarExampleNeverOverlaps holds guards"},
	"tenure migrate repair":                                                                                                 {confirm: true, bare: true},
	"tenure migrate mode leases       # or: sessions":                                                                       {bare: true},
	"tenure status\ntenure top\ntenure status --watch":                                                                      {skip: "tenure top needs a terminal, on which TestTopFollowsChangesOnTerminal runs it"},
	"tenure migrate down --to 0":                                                                                            {confirm: true, bare: true, whole: true},
	"tenure run --role billing --address 10.0.0.7 -- ./billing --port 5432     # on each machine":                           {until: "works|forwarding"},
	"# Shell: a loop that ends between two pieces of work":                                                                  {until: "works", whole: true},
	"tenure run --dsn postgres://app@db/app --role reports -- ./reports --port 8080":                                        {until: "works"},
	"tenure run --dsn … --role reports --health-command 'curl -fsS http://127.0.0.1:8080/healthz' -- ./reports --port 8080": {until: "works"},
	"tenure config check /etc/tenure/tenure.toml":                                                                           {until: "no errors|follower"},
	"tenure serve password anna --access operator >>tenure.toml":                                                            {input: "a password of an operator\n"},
	"tenure serve password anna --access operator >>tenure.toml\ntenure serve --config tenure.toml --listen 0.0.0.0:8080 --tls-cert tls.pem --tls-key key.pem --login-required": {
		setup: ownCertificate, input: "a password of an operator\n", until: "serving", whole: true, code: -1,
	},
	"tenure run --role billing --listen :8080": {until: "acquired|works|leading", beside: true, bare: true},
	"curl localhost:8080/v1/nodes/api-2":       {until: "data:", whole: true, code: -1},
	"curl -N localhost:8080/v1/events":         {until: "data:|event:", code: -1},

	// Reference
	"tenure agent --dsn postgres://app@db/app --socket /run/tenure/agent.sock": {until: "is ready|acquired|works", beside: true},
	"tenure cluster status\ntenure cluster status --watch -o json":             {until: "api-1"},
	"tenure cron run --config tenure.toml":                                     {until: "follower"},
	"tenure cron list\ntenure cron history backup\ntenure cron history --run 42\ntenure cron trigger backup\ntenure cron backfill backup --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z\ntenure cron pause backup --by ann\ntenure cron change backup --expr '0 4 * * *' --timeout 2h\ntenure cron reset backup\ntenure cron remove backup --yes": {setup: backupAtNoon},
	"tenure cron remove backup --yes":                           {setup: backupAtNoon},
	"tenure health":                                             {skip: "it asks port 8080, which another program may have: TestHealthExitCodeFollowsAnswer asks others"},
	"tenure migrate grants --user app":                          {skip: "the rights of a user of the whole server, which other tests change at the same time: TestMigrateGrantsSufficeForNode tries them"},
	"tenure processor rewind balances --to 742:1031":            {confirm: true},
	"tenure processor skip mails --at 742:1031":                 {skip: "no second event fails in time: TestProcessorCommandsRecordRequester skips"},
	"tenure proxy --role billing --listen :5433 --to-port 5432": {until: "forwarding"},
	"tenure history --role scheduler --since 24h":               {setup: "tenure run --role scheduler --once -- true"},
	"tenure retire --role billing-old":                          {setup: "tenure run --role billing-old --once -- true", bare: true},
	"tenure role rekey billing=0x464F52470001":                  {setup: "tenure run --role billing --once -- true", confirm: true, bare: true},
	"tenure run --dsn postgres://app@db/app --role billing":     {until: "acquired|works"},
	"tenure serve --dsn postgres://app@db/app --listen :8080":   {until: "serving"},
	"tenure serve password anna --access operator":              {input: "a password of an operator\n"},
	"tenure status --role billing\ntenure status --watch":       {until: "billing"},
}
