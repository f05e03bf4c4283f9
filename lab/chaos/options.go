package main

import "time"

// options are the flags of a run.
type options struct {
	nodes, roles int
	lease        time.Duration
	dsn          string
	verbose      bool
}
