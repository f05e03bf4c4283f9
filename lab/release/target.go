package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/lab/release/pack"
)

// host is the platform of this machine, whose program can run here.
var host = pack.Target{OS: runtime.GOOS, Arch: runtime.GOARCH}

// parseTargets reads a list of platforms; an empty one names all of a release.
func parseTargets(list string) ([]pack.Target, error) {
	if list == "" {
		return pack.Targets, nil
	}
	var targets []pack.Target
	for name := range strings.SplitSeq(list, ",") {
		system, arch, _ := strings.Cut(name, "/")
		target := pack.Target{OS: system, Arch: arch}
		if !slices.Contains(pack.Targets, target) {
			return nil, usagef("%q is no platform of a release: use some of %v", name, pack.Targets)
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// program is a program for one platform.
type program struct {
	pack.File
	path  string
	build *debug.BuildInfo
}

// programs are the folders of the programs of a release.
var programs = []string{"cmd/tenure", "server/tenure-server"}

// buildProgram installs the published version of the program in a folder for a platform.
func (p *trial) buildProgram(ctx context.Context, from string, target pack.Target) (program, error) {
	folder := filepath.Join(p.folder, "programs", target.OS+"_"+target.Arch)
	// Programs of other platforms are not installed into GOBIN.
	environment := append(slices.Clip(p.environment), "GOOS="+target.OS, "GOARCH="+target.Arch, "GOBIN=", "GOPATH="+folder)
	if _, err := output(ctx, p.folder, environment, "go", "install", "-ldflags=-s -w", library+"/"+from+"@"+p.version); err != nil {
		return program{}, err
	}
	name := target.File(filepath.Base(from))
	path := filepath.Join(folder, "bin", name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(folder, "bin", target.OS+"_"+target.Arch, name)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	build, err := buildinfo.ReadFile(path)
	return program{pack.File{Name: name, Mode: 0o755, Content: content}, path, build}, err
}

// buildPrograms installs the programs for a platform.
func (p *trial) buildPrograms(ctx context.Context, target pack.Target) ([]program, error) {
	var all []program
	for _, folder := range programs {
		built, err := p.buildProgram(ctx, folder, target)
		if err != nil {
			return nil, err
		}
		all = append(all, built)
	}
	return all, nil
}
