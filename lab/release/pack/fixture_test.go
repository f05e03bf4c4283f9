package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	made     = time.Date(2026, 11, 23, 12, 30, 0, 0, time.UTC)
	program  = []byte("a program")
	licenses = []byte("licenses of others\n")
)

// newContents is what packages have in common, in miniature.
func newContents() Contents {
	c := Contents{
		Version: "v0.1.0", Time: made, Maintainer: "Some One <one@example.com>",
		License: []byte("free\n"), Readme: []byte("# Tenure\n"),
		Unit:        []byte("[Service]\nExecStart=/usr/local/bin/tenure run\n"),
		Manual:      []File{{"tenure-run.1", 0o644, []byte(".TH RUN\n")}, {"tenure.1", 0o644, []byte(".TH TENURE\n")}},
		Completions: map[string][]byte{},
	}
	for _, shell := range Shells {
		c.Completions[shell.Name] = []byte("complete " + shell.Name + "\n")
	}
	return c
}

// readTarGz returns the files of an archive, and checks that they belong to root
// and have the time of the release.
func readTarGz(t *testing.T, content []byte) []File {
	t.Helper()
	archive := tar.NewReader(bytes.NewReader(gunzipped(t, content)))
	var files []File
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "root" || header.Gname != "root" {
			t.Errorf("%s belongs to %d %s, %d %s; want root", header.Name, header.Uid, header.Uname, header.Gid, header.Gname)
		}
		if !header.ModTime.Equal(made) {
			t.Errorf("%s is of %v; want %v", header.Name, header.ModTime, made)
		}
		file, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{header.Name, header.FileInfo().Mode().Perm(), file})
	}
}

func gunzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	if reader.Name != "" || !reader.ModTime.IsZero() {
		t.Errorf("the compressed file has the name %q and the time %v; want none", reader.Name, reader.ModTime)
	}
	return plain
}

// readAr returns the members of an archive of ar.
func readAr(t *testing.T, content []byte) []File {
	t.Helper()
	rest, found := strings.CutPrefix(string(content), "!<arch>\n")
	if !found {
		t.Fatalf("an archive of ar begins with %.8q", content)
	}
	var members []File
	for rest != "" {
		if len(rest) < 60 || rest[58:60] != "`\n" {
			t.Fatalf("no header of a member: %.60q", rest)
		}
		header := rest[:60]
		size, err := strconv.Atoi(strings.TrimSpace(header[48:58]))
		if err != nil {
			t.Fatal(err)
		}
		if modified := strings.TrimSpace(header[16:28]); modified != strconv.FormatInt(made.Unix(), 10) {
			t.Errorf("the time of a member is %s; want %d", modified, made.Unix())
		}
		if mode := strings.TrimSpace(header[40:48]); mode != "100644" {
			t.Errorf("the mode of a member is %s; want 100644", mode)
		}
		members = append(members, File{Name: strings.TrimSpace(header[:16]), Content: []byte(rest[60 : 60+size])})
		rest = rest[60+size+size%2:]
	}
	return members
}

// list describes files, one on each line.
func list(files []File) string {
	var lines strings.Builder
	for _, f := range files {
		fmt.Fprintf(&lines, "%o %s\n", f.Mode, f.Name)
	}
	return lines.String()
}

// content returns the content of a file in an archive.
func content(t *testing.T, files []File, name string) string {
	t.Helper()
	i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no %s in:\n%s", name, list(files))
	}
	return string(files[i].Content)
}

// programsFor are the programs of a platform.
func programsFor(t Target) []File {
	return []File{{t.File("tenure"), 0o755, program}, {t.File("tenure-server"), 0o755, []byte("a server")}}
}
