//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// crashLine is what a server writes about a process that ended by a fault in its own
// code. The faults of a script send other signals, and a full disk ends a process by
// SIGABRT.
var crashLine = regexp.MustCompile(`was terminated by signal (4|7|8|11):`)

// crash returns the line of a server's log about its first crash; empty if there is none.
func crash(log io.Reader) (string, error) {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		if crashLine.MatchString(line) {
			return strings.TrimSpace(line), nil
		}
		if err == io.EOF {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}

// checkServer returns an error if the server has crashed without a fault of the script:
// the bounds of a run do not allow for that.
func (b *bed) checkServer() error {
	if b.server == nil {
		return nil
	}
	log, err := os.Open(b.server.LogPath())
	if err != nil {
		return err
	}
	defer log.Close()
	line, err := crash(log)
	if line != "" {
		return fmt.Errorf("the server crashed, which no fault of the script does, so the run has no verdict: %s", line)
	}
	return err
}
