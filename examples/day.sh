#!/bin/sh
# A day with Tenure on an empty database: an HTTP service with three replicas, a Python
# program with a sidecar, shards, and a schedule that operators change while it runs.
#
#   examples/day.sh postgres://app@localhost/app
#
# It builds the programs, or takes them from the directory BIN. It needs psql, curl and
# python3, and five ports from PORT (default 18080).
set -eu

[ $# -eq 1 ] || { echo "usage: $0 DSN" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
port=${PORT:-18080}
SIGNAL=KILL
. "$here/cleanup.sh"

say() { echo "== $*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }

# start NAME COMMAND... runs a command in the background; $! is its process.
start() {
	log=$1
	shift
	"$@" >"$work/$log.log" 2>&1 &
	children="$children $!"
}

# until_true SECONDS COMMAND... repeats a command until it succeeds.
until_true() {
	end=$(($(date +%s) + $1))
	shift
	until "$@" >"$work/last" 2>&1; do
		[ "$(date +%s)" -lt "$end" ] || { cat "$work/last" >&2; fail "not in time: $*"; }
		sleep 0.1
	done
}

sql() { psql -X -q -t -A -v ON_ERROR_STOP=1 "$DATABASE_URL" -c "$1"; }
leads() { curl -fsS -m 2 "http://127.0.0.1:$1/leader"; }
order() { curl -fsS -m 15 -X POST "http://127.0.0.1:$1/orders"; }
contains() { grep -q -- "$1" "$2"; }

export DATABASE_URL="$1"
export TENURE_DSN="$1"
if [ -n "${BIN:-}" ]; then
	PATH=$BIN:$PATH
else
	say "build"
	(cd "$here/.." && go build -o "$work/" ./examples/service ./examples/shards ./cmd/tenure)
	PATH=$work:$PATH
fi

say "1. three replicas of a service: each takes orders, the leader writes them"
sql "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, port int, term bigint)"
for i in 0 1 2; do
	start "service-$i" service $((port + i))
	eval "service_$i=$!"
done
any_leads() { for i in 0 1 2; do leads $((port + i)) && leader=$i && return; done; return 1; }
until_true 20 any_leads
for i in 0 1 2; do
	until_true 20 curl -fsS -m 2 "http://127.0.0.1:$((port + i))/readyz"
	order $((port + i))
done
eval "kill -9 \$service_$leader"
say "the leader, port $((port + leader)), is killed"
for i in 0 1 2; do
	[ "$i" = "$leader" ] || order $((port + i))
done
[ "$(sql "SELECT count(*) FROM orders")" = 5 ] || fail "want 5 orders: $(sql "SELECT count(*) FROM orders")"
[ "$(sql "SELECT count(DISTINCT term) FROM orders")" = 2 ] || fail "want the orders of 2 terms"

say "2. a Python program with a sidecar works on the leader only"
printf %s token-of-this-day >"$work/token"
chmod 600 "$work/token"
for i in 3 4; do
	start "sidecar-$i" tenure run --role billing --name "copy-$i" --listen ":$((port + i))" --token-file "$work/token" --settle 1.2s
	start "copy-$i" python3 "$here/sidecar/billing.py" "http://127.0.0.1:$((port + i))" "$work/token"
done
worker() { for i in 3 4; do contains "invoice written" "$work/copy-$i.log" && first=$i && return; done; return 1; }
until_true 20 worker
other=$((7 - first))
until_true 20 curl -fsS -m 2 "http://127.0.0.1:$((port + other))/readyz"
! contains "invoice written" "$work/copy-$other.log" || fail "both copies wrote"
tenure step-down --role billing
until_true 20 contains "invoice written" "$work/copy-$other.log"

say "3. three owners share eight shards"
for i in 0 1 2; do
	start "shards-$i" shards
	owner=$!
done
led() {
	tenure status -o json | python3 -c '
import json, sys
led = {r["role"]: r["leader"]["node"] for r in json.load(sys.stdin)["roles"] if r["role"].startswith("shard/") and r["leader"]}
print(len(led), "shards,", len(set(led.values())), "owners")
sys.exit(len(led) != 8 or len(set(led.values())) != int(sys.argv[1]))' "$1"
}
until_true 20 led 3
kill -9 "$owner"
say "an owner is killed"
until_true 20 led 2

say "4. operators change a schedule while it runs"
cat >"$work/cron.toml" <<'TOML'
[[cron]]
name = "report"
schedule = "0 3 1 1 *"
command = "echo the report of $TENURE_SCHEDULE"
TOML
start cron tenure cron run --config "$work/cron.toml"
declared() { tenure cron list | grep report; }
until_true 20 declared
# runs FILTER N succeeds if at least N runs that the filter selects have succeeded.
runs() {
	tenure cron history report -o json | python3 -c '
import json, sys
runs = [r for r in json.load(sys.stdin)["runs"] if r["state"] == "succeeded" and (sys.argv[1] == "all" or r["manual"])]
print(len(runs), sys.argv[1], "runs")
sys.exit(len(runs) < int(sys.argv[2]))' "$1" "$2"
}
tenure cron change report --expr '@every 1s'
until_true 20 runs all 2
tenure cron pause report
tenure cron trigger report
until_true 20 runs manual 1
tenure cron history report --count 3
say "done"
