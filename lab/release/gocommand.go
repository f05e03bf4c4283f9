package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commandTimeout bounds one command: the first build on a machine compiles
// everything.
const commandTimeout = 20 * time.Minute

// machine is how the go command of this machine gets modules.
type machine struct{ GOPROXY, GOSUMDB, GONOSUMDB, GOMODCACHE, GOCACHE string }

func readMachine(ctx context.Context) (machine, error) {
	var m machine
	text, err := output(ctx, ".", os.Environ(), "go", "env", "-json", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOMODCACHE", "GOCACHE")
	if err == nil {
		err = json.Unmarshal([]byte(text), &m)
	}
	return m, err
}

// downloads is the folder of the machine's module cache that can serve as a proxy.
func (m machine) downloads() string { return filepath.Join(m.GOMODCACHE, "cache", "download") }

// with is this process's environment with a go command that works on single
// modules, asks some proxies before the machine's, and has more settings.
func (m machine) with(proxies []string, settings ...string) []string {
	var list []string
	for _, folder := range proxies {
		list = append(list, fileURL(folder))
	}
	environment := append(os.Environ(),
		"GOENV=off", "GOWORK=off", "GOCACHE="+m.GOCACHE,
		"GOPROXY="+strings.Join(append(list, m.GOPROXY), ","),
		"GOPRIVATE=", "GONOPROXY=", // or the first proxy would be passed over
	)
	return append(environment, settings...)
}

func fileURL(folder string) string {
	path := filepath.ToSlash(folder)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive's letter
	}
	return "file://" + path
}

// output runs a command and returns what it printed.
func output(ctx context.Context, folder string, environment []string, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Dir = folder
	command.Env = environment
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(words, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}
