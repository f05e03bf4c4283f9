# Sourced by the scripts of this directory. It sets work to a new directory for logs. At
# the end it sends SIGNAL to the processes in children, waits for them, shows the logs
# after a failure, and removes the directory.
work=$(mktemp -d)
children=

finish() {
	code=$?
	trap - EXIT INT TERM
	for child in $children; do kill -s "$SIGNAL" "$child" 2>/dev/null || true; done
	wait
	[ "$code" -eq 0 ] || tail -n 20 "$work"/*.log >&2
	rm -rf "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
