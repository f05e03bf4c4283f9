// Command tenure elects leaders on PostgreSQL from the command line, shows who leads, and
// reports obstacles to an election.
package main

import (
	"os"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli"
)

func main() { os.Exit(cli.Main()) }
