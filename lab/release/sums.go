package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

// checksums are the two lines of go.sum for a version of a module.
func (t *tree) checksums(m goModule, version string) ([]string, error) {
	folder, err := os.MkdirTemp("", "tenure-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	archive := filepath.Join(folder, "module.zip")
	if err := t.writeZip(archive, m, version); err != nil {
		return nil, err
	}
	all, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	content, err := t.read(m.file("go.mod"))
	if err != nil {
		return nil, err
	}
	only, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, err
	}
	return []string{
		m.path + " " + version + " " + all,
		m.path + " " + version + "/go.mod " + only,
	}, nil
}

// setChecksums replaces the lines of our modules in the go.sum of a module.
func (t *tree) setChecksums(m goModule, sums []string) error {
	name := m.file("go.sum")
	content, err := t.read(name)
	if err != nil {
		return err
	}
	return t.set(name, joinSums(append(foreignSums(content), sums...)))
}

// foreignSums are the lines of a go.sum that are not of our modules.
func foreignSums(content []byte) []string {
	var lines []string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if modulePath, _, found := strings.Cut(line, " "); found && !ours(modulePath) {
			lines = append(lines, line)
		}
	}
	return lines
}

// joinSums makes a go.sum in the order of the go command.
func joinSums(lines []string) []byte {
	versions := make([]module.Version, 0, len(lines))
	byVersion := map[module.Version]string{}
	for _, line := range lines {
		words := strings.Fields(line)
		v := module.Version{Path: words[0], Version: words[1]}
		versions = append(versions, v)
		byVersion[v] = line
	}
	module.Sort(versions)
	var out bytes.Buffer
	for _, v := range slices.Compact(versions) {
		out.WriteString(byVersion[v] + "\n")
	}
	return out.Bytes()
}
