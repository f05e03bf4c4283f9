package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// writeProxy writes all published modules at a version into a folder, in the
// layout of a module proxy.
func (t *tree) writeProxy(folder, version string) error {
	all, err := t.modules()
	if err != nil {
		return err
	}
	for _, m := range all {
		if !m.published() {
			continue
		}
		if err := t.writeModule(folder, m, version); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) writeModule(folder string, m goModule, version string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	folder = filepath.Join(folder, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	goMod, err := t.read(m.file("go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC()})
	if err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(folder, name) }
	return errors.Join(
		os.WriteFile(file("list"), []byte(version+"\n"), 0o644),
		os.WriteFile(file(version+".info"), info, 0o644),
		os.WriteFile(file(version+".mod"), goMod, 0o644),
		t.writeZip(file(version+".zip"), m, version),
	)
}

// writeZip writes the archive that the go command makes of a tagged module.
func (t *tree) writeZip(name string, m goModule, version string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = zip.Create(file, module.Version{Path: m.path, Version: version}, t.zipFiles(m))
	return errors.Join(err, file.Close())
}

func (t *tree) zipFiles(m goModule) []zip.File {
	var files []zip.File
	for _, name := range t.names {
		inModule, ok := name, true
		if m.folder != "." {
			inModule, ok = strings.CutPrefix(name, m.folder+"/")
		}
		if ok {
			files = append(files, zipFile{t, name, inModule})
		}
	}
	// The go command gives the repository's license to modules without one.
	const license = "LICENSE"
	if m.folder != "." && !t.has(m.file(license)) && t.has(license) {
		files = append(files, zipFile{t, license, license})
	}
	return files
}

// zipFile is a file of the tree in a module.
type zipFile struct {
	tree     *tree
	name     string
	inModule string
}

func (f zipFile) Path() string { return path.Clean(f.inModule) }

func (f zipFile) Lstat() (fs.FileInfo, error) {
	info, err := os.Lstat(f.tree.path(f.name))
	if content, ok := f.tree.changed[f.name]; ok && err == nil {
		info = sizedInfo{info, int64(len(content))}
	}
	return info, err
}

func (f zipFile) Open() (io.ReadCloser, error) {
	if content, ok := f.tree.changed[f.name]; ok {
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	return os.Open(f.tree.path(f.name))
}

// sizedInfo is the information on a file with its changed size.
type sizedInfo struct {
	fs.FileInfo
	size int64
}

func (i sizedInfo) Size() int64 { return i.size }
