package main

import (
	"bytes"
	"os"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/exactly-one/tenure/lab/release/pack"
)

const recipe = "deploy/docker/Dockerfile"

// dockerContext is what docker build needs: the recipe, and the files of the tree
// that .dockerignore lets in.
func (t *tree) dockerContext(modified time.Time) ([]byte, error) {
	ignored, err := t.read(".dockerignore")
	if err != nil {
		return nil, err
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(ignored))
	if err != nil {
		return nil, err
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, err
	}
	var files []pack.File
	for _, name := range t.names {
		leftOut, err := matcher.MatchesOrParentMatches(name)
		if err != nil {
			return nil, err
		}
		if leftOut && name != recipe {
			continue
		}
		f := pack.File{Name: name, Mode: 0o644}
		if f.Content, err = t.read(name); err != nil {
			return nil, err
		}
		info, err := os.Stat(t.path(name))
		if err != nil {
			return nil, err
		}
		if info.Mode()&0o111 != 0 {
			f.Mode = 0o755
		}
		files = append(files, f)
	}
	return pack.TarGz(files, modified)
}
