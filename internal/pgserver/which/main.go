// Command which prints the PostgreSQL servers that tests and the demonstration
// find on this machine, the preferred one first. It fails if there is none.
package main

import (
	"fmt"
	"os"

	"github.com/exactly-one/tenure/internal/pgserver"
)

func main() {
	if _, err := pgserver.Find(""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, installation := range pgserver.Installations() {
		fmt.Println(installation.Version, installation.Bin)
	}
}
