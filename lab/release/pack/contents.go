package pack

import (
	"strings"
	"time"
)

// Target is a platform that a program is built for, in the words of the go command.
type Target struct{ OS, Arch string }

// Targets are the platforms of a release.
var Targets = []Target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// File is the name of a program's file.
func (t Target) File(program string) string {
	if t.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// Shell is a shell that the program writes completions for.
type Shell struct {
	Name   string // the argument of tenure completion
	file   string // in archives
	debian string // where Debian's package of the shell looks; empty if there is none
}

// Shells are the shells with completions.
var Shells = []Shell{
	{"bash", "tenure.bash", "usr/share/bash-completion/completions/tenure"},
	{"fish", "tenure.fish", "usr/share/fish/vendor_completions.d/tenure.fish"},
	{"powershell", "tenure.ps1", ""},
	{"zsh", "_tenure", "usr/share/zsh/vendor-completions/_tenure"},
}

// Contents is what the packages of all platforms have in common.
type Contents struct {
	Version     string    // such as v0.1.0
	Time        time.Time // of every file
	Maintainer  string    // NAME <ADDRESS>, of the Debian packages
	License     []byte
	Readme      []byte
	Unit        []byte            // of systemd, with the program in /usr/local/bin
	Manual      []File            // tenure.1, tenure-run.1, ...
	Completions map[string][]byte // by the names of [Shells]
}

// Base is how the names of a version's files begin.
func Base(version string) string { return "tenure_" + strings.TrimPrefix(version, "v") }

// Archive makes the archive of a platform: a ZIP archive for Windows, else a
// compressed tar archive. licenses is the text of the licenses of what the programs
// contain.
func (c Contents) Archive(t Target, programs []File, licenses []byte) (File, error) {
	name := Base(c.Version) + "_" + t.OS + "_" + t.Arch
	files := []File{
		{"LICENSE", 0o644, c.License},
		{"README.md", 0o644, c.Readme},
		{"THIRD_PARTY_LICENSES", 0o644, licenses},
	}
	files = append(files, programs...)
	for _, shell := range Shells {
		files = append(files, File{"completions/" + shell.file, 0o644, c.Completions[shell.Name]})
	}
	for _, page := range c.Manual {
		files = append(files, File{"man/man1/" + page.Name, 0o644, page.Content})
	}
	if t.OS == "linux" {
		files = append(files, File{"systemd/" + unitName, 0o644, c.Unit})
	}
	for i := range files {
		files[i].Name = name + "/" + files[i].Name // nothing lands beside other files
	}
	write, extension := TarGz, ".tar.gz"
	if t.OS == "windows" {
		write, extension = zipped, ".zip"
	}
	content, err := write(files, c.Time)
	return File{name + extension, 0o644, content}, err
}
