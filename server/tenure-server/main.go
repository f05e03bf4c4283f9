// Command tenure-server serves the dashboard, evaluates alerts, and keeps the records of
// a cluster. The command "tenure serve" becomes it.
package main

import (
	"os"

	"github.com/exactly-one/tenure/server/internal/program"
)

func main() { os.Exit(program.Main()) }
