//go:build !unix

package pgserver

import (
	"errors"
	"os/exec"
)

type account struct{}

func unprivileged() (*account, error) {
	return nil, errors.New("private PostgreSQL servers need a Unix-like system")
}

func (*account) own(string) error { return nil }

func (*account) run(*exec.Cmd) {}
