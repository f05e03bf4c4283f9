package main

import (
	"io"
	"time"
)

// options are the flags of a run.
type options struct {
	lease, failoverWait time.Duration
	hold                time.Duration // the least time that a fault lasts, if it lasts
	verbose             bool
	nodeLog             io.Writer
	logs                string
}
