package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// trialVersion is what checks publish: never a version that exists elsewhere.
const trialVersion = "v0.0.0-trial"

// trial is a place where a version of all modules is published for this process
// alone: a proxy in a folder, which its go command asks first.
type trial struct {
	version     string
	folder      string
	environment []string
	leftovers   []string // patterns of files outside of the folder
}

// publish publishes the files of a tree.
func publish(t *tree, version string) (*trial, error) {
	folder, err := os.MkdirTemp("", "tenure-trial-")
	if err != nil {
		return nil, err
	}
	p := &trial{version: version, folder: folder}
	if err := errors.Join(t.setVersion(version), t.writeProxy(p.proxy(), version)); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// newInstallTrial has an empty module cache. What the machine has downloaded comes
// from there.
func newInstallTrial(ctx context.Context, t *tree, version string) (*trial, error) {
	m, err := readMachine(ctx)
	if err != nil {
		return nil, err
	}
	p, err := publish(t, version)
	if err != nil {
		return nil, err
	}
	p.environment = m.with([]string{p.proxy(), m.downloads()},
		"GOMODCACHE="+p.modules(), "GOBIN="+filepath.Join(p.folder, "bin"),
		// What is downloaded was checked when the go.sum files got it, and the
		// checksum database cannot know the trial.
		"GOSUMDB=off",
		// Without paths in it, the build cache serves every trial.
		"GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0",
	)
	return p, nil
}

// newTidyTrial uses the module cache of the machine, which keeps what `go mod tidy`
// downloads. Its modules have a unique version, which is removed from the cache.
func newTidyTrial(ctx context.Context, t *tree) (*trial, error) {
	m, err := readMachine(ctx)
	if err != nil {
		return nil, err
	}
	p, err := publish(t, trialVersion+".x"+strings.ToLower(rand.Text()))
	if err != nil {
		return nil, err
	}
	exceptions := strings.TrimPrefix(m.GONOSUMDB+","+library+","+library+"/*", ",")
	p.environment = m.with([]string{p.proxy()},
		"GOMODCACHE="+m.GOMODCACHE, "GOSUMDB="+m.GOSUMDB, "GONOSUMDB="+exceptions, "GOFLAGS=")
	for _, required := range []string{library, shared} {
		path := filepath.FromSlash(required)
		p.leftovers = append(p.leftovers, filepath.Join(m.GOMODCACHE, path+"@"+p.version), filepath.Join(m.downloads(), path, "@v", p.version+".*"))
	}
	return p, nil
}

func (p *trial) proxy() string { return filepath.Join(p.folder, "proxy") }

// modules is the module cache of an installation.
func (p *trial) modules() string { return filepath.Join(p.folder, "modules") }

// run runs a command in a folder with the trial's environment.
func (p *trial) run(ctx context.Context, folder string, words ...string) (string, error) {
	return output(ctx, folder, p.environment, words...)
}

func (p *trial) close() error {
	err := os.RemoveAll(p.folder)
	for _, pattern := range p.leftovers {
		paths, globErr := filepath.Glob(pattern)
		err = errors.Join(err, globErr)
		for _, path := range paths {
			err = errors.Join(err, removeReadOnly(path))
		}
	}
	return err
}

// removeReadOnly removes a file, or a folder that the go command has made
// read-only.
func removeReadOnly(path string) error {
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(path))
}
