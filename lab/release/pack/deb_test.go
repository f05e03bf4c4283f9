package pack

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const installed = `755 ./
755 ./etc/
755 ./etc/tenure/
755 ./usr/
755 ./usr/bin/
755 ./usr/bin/tenure
755 ./usr/bin/tenure-server
755 ./usr/lib/
755 ./usr/lib/systemd/
755 ./usr/lib/systemd/system/
644 ./usr/lib/systemd/system/tenure@.service
755 ./usr/share/
755 ./usr/share/doc/
755 ./usr/share/doc/tenure/
644 ./usr/share/doc/tenure/README.md
644 ./usr/share/doc/tenure/copyright
755 ./usr/share/lintian/
755 ./usr/share/lintian/overrides/
644 ./usr/share/lintian/overrides/tenure
644 ./usr/share/doc/tenure/THIRD_PARTY_LICENSES.gz
644 ./usr/share/doc/tenure/changelog.gz
755 ./usr/share/man/
755 ./usr/share/man/man1/
644 ./usr/share/man/man1/tenure-run.1.gz
644 ./usr/share/man/man1/tenure.1.gz
755 ./usr/share/bash-completion/
755 ./usr/share/bash-completion/completions/
644 ./usr/share/bash-completion/completions/tenure
755 ./usr/share/fish/
755 ./usr/share/fish/vendor_completions.d/
644 ./usr/share/fish/vendor_completions.d/tenure.fish
755 ./usr/share/zsh/
755 ./usr/share/zsh/vendor-completions/
644 ./usr/share/zsh/vendor-completions/_tenure
`

func newDeb(t *testing.T, c Contents) File {
	t.Helper()
	deb, err := c.Deb("arm64", programsFor(Target{"linux", "arm64"}), licenses)
	if err != nil {
		t.Fatal(err)
	}
	return deb
}

func TestDebInstallsFiles(t *testing.T) {
	deb := newDeb(t, newContents())
	if deb.Name != "tenure_0.1.0_arm64.deb" {
		t.Errorf("the package is %s", deb.Name)
	}
	members := readAr(t, deb.Content)
	if got, want := list(members), "0 debian-binary\n0 control.tar.gz\n0 data.tar.gz\n"; got != want {
		t.Errorf("the package has the members:\n%swant:\n%s", got, want)
	}
	if got := content(t, members, "debian-binary"); got != "2.0\n" {
		t.Errorf("the version of the format is %q", got)
	}
	files := readTarGz(t, []byte(content(t, members, "data.tar.gz")))
	if got := list(files); got != installed {
		t.Errorf("the package installs:\n%swant:\n%s", got, installed)
	}
	if got := content(t, files, "./usr/bin/tenure"); got != "a program" {
		t.Errorf("the program is %q", got)
	}
	if got, want := content(t, files, "./usr/lib/systemd/system/tenure@.service"), "[Service]\nExecStart=/usr/bin/tenure run\n"; got != want {
		t.Errorf("the unit is %q; want %q", got, want)
	}
	if got := gunzipped(t, []byte(content(t, files, "./usr/share/man/man1/tenure.1.gz"))); string(got) != ".TH TENURE\n" {
		t.Errorf("the manual page is %q", got)
	}
	changes := "tenure (0.1.0) stable; urgency=medium\n\n  * https://github.com/exactly-one/tenure/blob/v0.1.0/CHANGELOG.md\n\n" +
		" -- Some One <one@example.com>  Mon, 23 Nov 2026 12:30:00 +0000\n"
	if got := gunzipped(t, []byte(content(t, files, "./usr/share/doc/tenure/changelog.gz"))); string(got) != changes {
		t.Errorf("the changelog is %q; want %q", got, changes)
	}
	checkSums(t, members, files)
}

// checkSums compares the sums in a package, which dpkg --verify reads, with its
// files.
func checkSums(t *testing.T, members, files []File) {
	t.Helper()
	var want strings.Builder
	for _, f := range files {
		if !f.isFolder() {
			fmt.Fprintf(&want, "%x  %s\n", md5.Sum(f.Content), strings.TrimPrefix(f.Name, "./"))
		}
	}
	control := readTarGz(t, []byte(content(t, members, "control.tar.gz")))
	if got := content(t, control, "./md5sums"); got != want.String() {
		t.Errorf("the sums are:\n%swant:\n%s", got, want.String())
	}
}

func TestDebDescribesItself(t *testing.T) {
	control := readTarGz(t, []byte(content(t, readAr(t, newDeb(t, newContents()).Content), "control.tar.gz")))
	want := "755 ./\n644 ./control\n644 ./md5sums\n755 ./postinst\n755 ./postrm\n755 ./prerm\n"
	if got := list(control); got != want {
		t.Errorf("the package has:\n%swant:\n%s", got, want)
	}
	fields := content(t, control, "./control")
	for _, want := range []string{
		"Package: tenure\n", "Version: 0.1.0\n", "Architecture: arm64\n", "Maintainer: Some One <one@example.com>\n",
		"Installed-Size: 13\n", "\nDescription: leader election on PostgreSQL\n Tenure elects",
	} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in:\n%s", want, fields)
		}
	}
	for _, line := range strings.Split(strings.TrimSuffix(fields, "\n"), "\n") {
		if line == "" || strings.TrimSpace(line) != strings.TrimPrefix(line, " ") {
			t.Errorf("the line %q ends the fields", line)
		}
	}
}

// Where dpkg-deb is, it must read the same as these tests do.
func TestDebIsReadByDpkg(t *testing.T) {
	deb := newDeb(t, newContents())
	members := readAr(t, deb.Content)
	command, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Logf("NOT COMPARED: %v", err)
		return
	}
	file := filepath.Join(t.TempDir(), deb.Name)
	if err := os.WriteFile(file, deb.Content, 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(words ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), command, words...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
		return string(out)
	}
	control := readTarGz(t, []byte(content(t, members, "control.tar.gz")))
	if got, want := read("--field", file), content(t, control, "./control"); got != want {
		t.Errorf("dpkg-deb reads:\n%swant:\n%s", got, want)
	}
	var names strings.Builder
	for line := range strings.Lines(read("--contents", file)) {
		fmt.Fprintln(&names, path.Clean(strings.Fields(line)[5]))
	}
	var want strings.Builder
	for _, f := range readTarGz(t, []byte(content(t, members, "data.tar.gz"))) {
		fmt.Fprintln(&want, path.Clean(f.Name))
	}
	if names.String() != want.String() {
		t.Errorf("dpkg-deb lists:\n%swant:\n%s", names.String(), want.String())
	}
	if got := read("--info", file); !strings.Contains(got, "new Debian package, version 2.0") || !strings.Contains(got, "postinst") {
		t.Errorf("dpkg-deb describes it as:\n%s", got)
	}
}

// An upgrade restarts no service; before the program is removed, its services end.
// A system that is installed in a folder has no systemd that runs.
func TestScriptsOfDebRestartNoService(t *testing.T) {
	const reload = "--system daemon-reload\n"
	for name, test := range map[string]struct {
		script, step string
		inFolder     bool
		want         string // the arguments of systemctl
	}{
		"installation":           {script: postinst, step: "configure", want: reload},
		"failed upgrade":         {script: postinst, step: "abort-upgrade"},
		"upgrade":                {script: prerm, step: "upgrade"},
		"removal":                {script: prerm, step: "remove", want: "stop tenure@*.service\n"},
		"after an upgrade":       {script: postrm, step: "upgrade"},
		"after a removal":        {script: postrm, step: "remove", want: reload},
		"installation in a root": {script: postinst, step: "configure", inFolder: true},
		"removal in a root":      {script: prerm, step: "remove", inFolder: true},
	} {
		folder := t.TempDir()
		fake := "#!/bin/sh\necho \"$@\" >>" + folder + "/called\nexit 1\n"
		if err := os.WriteFile(filepath.Join(folder, "systemctl"), []byte(fake), 0o700); err != nil {
			t.Fatal(err)
		}
		script := strings.Replace(test.script, "/run/systemd/system", folder, 1)
		shell := exec.CommandContext(t.Context(), "sh", "-c", script, "script", test.step)
		shell.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH")}
		if test.inFolder {
			shell.Env = append(shell.Env, "DPKG_ROOT="+folder)
		}
		if out, err := shell.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		called, err := os.ReadFile(filepath.Join(folder, "called"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if string(called) != test.want {
			t.Errorf("%s: it calls systemctl with %q; want %q", name, called, test.want)
		}
	}
}

func TestDebVersionsSortPrereleases(t *testing.T) {
	c := newContents()
	c.Version = "v0.2.0-rc.1"
	if got, want := newDeb(t, c).Name, "tenure_0.2.0~rc.1_arm64.deb"; got != want {
		t.Errorf("the package is %s; want %s", got, want)
	}
}

func TestDebNeedsTheProgramInTheUnit(t *testing.T) {
	c := newContents()
	c.Unit = []byte("[Service]\nExecStart=/opt/tenure run\n")
	if _, err := c.Deb("amd64", programsFor(Target{"linux", "amd64"}), licenses); err == nil || !strings.Contains(err.Error(), "tenure@.service") {
		t.Errorf("error %v; want one that names the unit", err)
	}
}

func TestDebIsReproducible(t *testing.T) {
	if first, second := newDeb(t, newContents()), newDeb(t, newContents()); !bytes.Equal(first.Content, second.Content) {
		t.Error("the package differs between two runs")
	}
}
