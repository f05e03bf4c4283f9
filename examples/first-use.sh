#!/bin/sh
# The first use of Tenure in a clean directory, timed: from a clone to the first failover
# of the demonstration, and from an empty Go module to a fenced write of an elected leader.
#
#   examples/first-use.sh postgres://app@localhost/app
#
# It needs git, make and Go.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 DSN" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
SIGNAL=TERM
. "$root/examples/cleanup.sh"

# step NAME reports the time since the last step.
last=$(date +%s)
step() {
	now=$(date +%s)
	echo "== $1 after $((now - last)) s"
	last=$now
}

# await LOG TEXT waits for a text in the log of the child.
await() {
	until grep -q "$2" "$work/$1.log"; do
		if ! kill -0 "$children" 2>/dev/null && ! grep -q "$2" "$work/$1.log"; then
			echo "FAILED: $1 ended before it printed \"$2\"" >&2
			exit 1
		fi
		sleep 0.1
	done
	kill "$children" 2>/dev/null || true
	wait "$children" || true # it was ended
	children=
}

git clone --quiet "$root" "$work/tenure"
make -s -C "$work/tenure" build
step "cloned and built"

"$work/tenure/bin/tenure" demo -o json >"$work/demo.log" 2>&1 &
children=$!
await demo '"failover_seconds":'
step "first failover"

mkdir "$work/app"
cd "$work/app"
go mod init example.com/app 2>"$work/module.log"
cp "$work/tenure/examples/billing/main.go" .
go mod edit -replace "github.com/exactly-one/tenure=$work/tenure"
GOWORK=off go mod tidy 2>>"$work/module.log"
GOWORK=off go build -o billing . 2>>"$work/module.log"
DATABASE_URL=$1 ./billing >"$work/billing.log" 2>&1 &
children=$!
await billing 'invoice written in term '
step "fenced write in a new module"
echo "== done"
