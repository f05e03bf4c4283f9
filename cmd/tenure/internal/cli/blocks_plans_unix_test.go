//go:build unix

package cli

// Reasons why blocks cannot run here.
const (
	noShell   = "it is no shell, but shows a statement, a setting or a formula"
	tutorial  = "it is a step of a tutorial, and TestTutorialOfCommandsRuns runs all of them in order"
	published = "it needs a published version, and internal/release installs the program as if there were one"
	targets   = "make demo and make test have tests of their own, and this is one of the tests"
	elsewhere = "it needs a program or a service that is not here: "
)

// plans are how blocks run that need more than an installation, or why they do not run, by their
// first line.
var plans = map[string]plan{
	// README.md
	"make demo   # three nodes on a private PostgreSQL, or SQLite; the leader is killed every few seconds":                            {skip: targets},
	"go install github.com/exactly-one/tenure/cmd/tenure@latest   # or, in this folder: make build && export PATH=\"$PWD/bin:$PATH\"": {skip: published},
	"go get github.com/exactly-one/tenure@latest": {skip: published},

	// Tutorials
	"go install github.com/exactly-one/tenure/cmd/tenure@latest": {skip: published},
	"export DATABASE_URL=postgres://app@localhost/app":           {skip: tutorial},
	"#!/bin/sh": {skip: tutorial},
	"tenure run --name one --role reports --log-level error -- ./report.sh":                          {skip: tutorial},
	"tenure run --name two --role reports --log-level error -- ./report.sh":                          {skip: tutorial},
	"kill -9 $(pgrep -f '^tenure run --name one ')":                                                  {skip: tutorial},
	"kill -STOP $(pgrep -f '^tenure run --name one ')":                                               {skip: tutorial},
	"kill -CONT $(pgrep -f '^tenure run --name one ')":                                               {skip: tutorial},
	"docker run --rm -d --name tenure-tutorial -p 5432:5432 -e POSTGRES_PASSWORD=secret postgres:18": {skip: elsewhere + "Docker"},
	"mkdir billing && cd billing":                                                                    {skip: published},
	"go mod tidy":                                                                                    {skip: published},
	"./billing":                                                                                      {skip: published},
	"pkill -9 -o -x billing":                                                                         {skip: published},
	"pkill -STOP -o -x billing      # -n instead of -o if the newer one leads":                       {skip: published},
	"pkill -CONT -o -x billing":                                                                      {skip: published},
	`psql "$DATABASE_URL" -c 'SELECT term, count(*), min(written), max(written) FROM invoices GROUP BY term ORDER BY term'`: {skip: published},
	`psql "$DATABASE_URL" -c 'DROP TABLE invoices'`: {skip: published},
}
