module github.com/exactly-one/tenure/bench/chaos

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/exactly-one/tenure v0.1.0
	github.com/jackc/pgx/v5 v5.12.0
	golang.org/x/sys v0.48.0
)
