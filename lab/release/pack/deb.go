package pack

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"strings"
	"time"
)

const (
	unitName = "tenure@.service"
	homepage = "https://github.com/exactly-one/tenure"
	docs     = "usr/share/doc/tenure/"
)

// Deb makes the Debian package of an architecture: an archive of ar with a version
// of the format, an archive with the description, and one with the files.
func (c Contents) Deb(arch string, programs []File, licenses []byte) (File, error) {
	files, err := c.debFiles(programs, licenses)
	if err != nil {
		return File{}, err
	}
	version := debVersion(c.Version)
	data, err := TarGz(inRoot(withFolders(files)), c.Time)
	if err != nil {
		return File{}, err
	}
	control, err := TarGz(inRoot([]File{
		{"control", 0o644, c.control(version, arch, files)},
		{"md5sums", 0o644, md5sums(files)},
		{"postinst", 0o755, []byte(postinst)},
		{"postrm", 0o755, []byte(postrm)},
		{"prerm", 0o755, []byte(prerm)},
	}), c.Time)
	if err != nil {
		return File{}, err
	}
	return File{"tenure_" + version + "_" + arch + ".deb", 0o644, ar([]File{
		{"debian-binary", 0o644, []byte("2.0\n")},
		{"control.tar.gz", 0o644, control},
		{"data.tar.gz", 0o644, data},
	}, c.Time)}, nil
}

// debVersion is a version in Debian's order, in which ~ comes before the end.
func debVersion(version string) string {
	return strings.ReplaceAll(strings.TrimPrefix(version, "v"), "-", "~")
}

func (c Contents) debFiles(programs []File, licenses []byte) ([]File, error) {
	const local, packaged = "ExecStart=/usr/local/bin/tenure ", "ExecStart=/usr/bin/tenure "
	if strings.Count(string(c.Unit), local) != 1 {
		return nil, fmt.Errorf("%s has not one line with %q", unitName, local)
	}
	unit := strings.Replace(string(c.Unit), local, packaged, 1)
	changes := fmt.Sprintf("tenure (%s) stable; urgency=medium\n\n  * %s/blob/%s/CHANGELOG.md\n\n -- %s  %s\n",
		debVersion(c.Version), homepage, c.Version, c.Maintainer, c.Time.UTC().Format(time.RFC1123Z))
	files := []File{{"etc/tenure/", 0o755, nil}}
	for _, p := range programs {
		files = append(files, File{"usr/bin/" + p.Name, p.Mode, p.Content})
	}
	files = append(files, []File{
		{"usr/lib/systemd/system/" + unitName, 0o644, []byte(unit)},
		{docs + "README.md", 0o644, c.Readme},
		{docs + "copyright", 0o644, []byte(copyright)},
		{"usr/share/lintian/overrides/tenure", 0o644, []byte(overrides)},
	}...)
	compressed := []File{
		{docs + "THIRD_PARTY_LICENSES", 0o644, licenses},
		{docs + "changelog", 0o644, []byte(changes)},
	}
	for _, page := range c.Manual {
		compressed = append(compressed, File{"usr/share/man/man1/" + page.Name, 0o644, page.Content})
	}
	for _, f := range compressed {
		content, err := gzipped(f.Content)
		if err != nil {
			return nil, err
		}
		files = append(files, File{f.Name + ".gz", f.Mode, content})
	}
	for _, shell := range Shells {
		if shell.debian != "" {
			files = append(files, File{shell.debian, 0o644, c.Completions[shell.Name]})
		}
	}
	return files, nil
}

func (c Contents) control(version, arch string, files []File) []byte {
	size := 0 // in KiB, as dpkg counts: rounded up for each file
	for _, f := range files {
		size += (len(f.Content) + 1023) / 1024
	}
	return fmt.Appendf(nil, controlFields, version, arch, c.Maintainer, size, homepage)
}

const controlFields = `Package: tenure
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Recommends: ca-certificates
Suggests: postgresql
Section: database
Priority: optional
Homepage: %s
Description: leader election on PostgreSQL
 Tenure elects leaders on a PostgreSQL database, so that a command runs on at
 most one of several machines at a time. If the leader crashes, a standby takes
 over.
 .
 This package has the program and its server, a systemd unit for each role
 (tenure@ROLE), the manual pages and the completions for bash, fish and zsh.
`

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tenure
Source: ` + homepage + `
Comment: The programs contain modules of other projects. Their licenses are in
 THIRD_PARTY_LICENSES.gz.

Files: *
Copyright: 2026 the contributors to Tenure
License: Apache-2.0
 The text of the license is in /usr/share/common-licenses/Apache-2.0.
`

// overrides are what lintian must not report.
const overrides = `# Programs in Go need no C library.
tenure: statically-linked-binary [usr/bin/tenure]
tenure: statically-linked-binary [usr/bin/tenure-server]
# It stops all services of a template, and systemd reads its units again; no service is enabled here.
tenure: maintainer-script-calls-systemctl *
`

// The scripts make systemd read its units again. An upgrade restarts no service: a
// restarted leader causes a failover, for which an operator chooses the time. Before
// the program is removed, its services step down.
const (
	scriptBegin = "#!/bin/sh\nset -e\n" + `if [ "$1" = `
	scriptEnd   = ` ] && [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then` + "\n\t%s || true\nfi\n"
)

var (
	postinst = script("configure", "systemctl --system daemon-reload >/dev/null")
	postrm   = script("remove", "systemctl --system daemon-reload >/dev/null")
	prerm    = script("remove", "systemctl stop 'tenure@*.service'")
)

// script is a script of a package that runs a command in one step of dpkg, if
// systemd runs.
func script(step, command string) string {
	return scriptBegin + step + fmt.Sprintf(scriptEnd, command)
}

func md5sums(files []File) []byte {
	var out []byte
	for _, f := range files {
		if !f.isFolder() {
			out = fmt.Appendf(out, "%x  %s\n", md5.Sum(f.Content), f.Name)
		}
	}
	return out
}

// inRoot names files as dpkg does: relative to the root that they are unpacked in.
func inRoot(files []File) []File {
	all := []File{{Name: "./", Mode: 0o755}}
	for _, f := range files {
		f.Name = "./" + f.Name
		all = append(all, f)
	}
	return all
}

// ar makes an archive in the common format of ar, with short names.
func ar(members []File, modified time.Time) []byte {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.Name, modified.Unix(), 0, 0, 0o100000|m.Mode.Perm(), len(m.Content))
		out.Write(m.Content)
		if len(m.Content)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
