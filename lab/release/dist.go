package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure/lab/release/pack"
)

// distFolder is where the files to publish are, in the repository. Git ignores it.
const distFolder = "dist"

// makeDist replaces the folder of the files to publish by the files of a tree at
// the version. The folder stays if that fails.
func (r release) makeDist(ctx context.Context, out io.Writer, t *tree) (err error) {
	p, err := newInstallTrial(ctx, t, r.version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	files, err := r.distFiles(ctx, out, t, p)
	if err != nil {
		return err
	}
	if err := replaceFolder(r.root, distFolder, files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(out, "  %s/%s (%d KiB)\n", distFolder, f.Name, (len(f.Content)+1023)/1024)
	}
	return nil
}

// distFiles makes the files to publish. The notes have no checksum: they are the
// text of the page that the other files are published on.
func (r release) distFiles(ctx context.Context, out io.Writer, t *tree, p *trial) ([]pack.File, error) {
	changelog, err := t.read("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	contents, err := r.contents(ctx, t, p)
	if err != nil {
		return nil, err
	}
	source, err := t.dockerContext(contents.Time)
	if err != nil {
		return nil, err
	}
	files := []pack.File{{Name: pack.Base(r.version) + "_docker-context.tar.gz", Mode: 0o644, Content: source}}
	for _, target := range r.targets {
		began := time.Now()
		packages, err := packTarget(ctx, p, contents, target)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", target.OS, target.Arch, err)
		}
		fmt.Fprintf(out, "%s: build for %s/%s (%.0f s)\n", r.version, target.OS, target.Arch, time.Since(began).Seconds())
		files = append(files, packages...)
	}
	heading, reason, err := r.notesHeading(string(changelog))
	if err != nil {
		return nil, err
	}
	if reason != nil {
		fmt.Fprintf(out, "notes.md has the entries under [Unreleased]. Before the release: %v\n", reason)
	}
	notes := pack.File{Name: "notes.md", Mode: 0o644, Content: pack.Notes(changelogSection(string(changelog), heading), r.version)}
	return append(files, pack.Sums(files), notes), nil
}

// packTarget makes the files for one platform.
func packTarget(ctx context.Context, p *trial, contents pack.Contents, target pack.Target) ([]pack.File, error) {
	built, err := p.buildPrograms(ctx, target)
	if err != nil {
		return nil, err
	}
	licenses, err := p.licenses(ctx, built)
	if err != nil {
		return nil, err
	}
	var executables []pack.File
	for _, b := range built {
		executables = append(executables, b.File)
	}
	archive, err := contents.Archive(target, executables, licenses)
	if err != nil {
		return nil, err
	}
	files := []pack.File{archive}
	for i, b := range built {
		name := strings.Replace(pack.Base(contents.Version), "tenure", filepath.Base(programs[i]), 1) + "_" + target.OS + "_" + target.Arch
		bom, err := pack.SBOM(name, b.Content, b.build, contents.Time)
		if err != nil {
			return nil, err
		}
		files = append(files, bom)
	}
	if target.OS == "linux" {
		deb, err := contents.Deb(target.Arch, executables, licenses)
		if err != nil {
			return nil, err
		}
		files = append(files, deb)
	}
	return files, nil
}

// contents collects what the packages of all platforms have in common. The program
// for this machine writes its manual and completions.
func (r release) contents(ctx context.Context, t *tree, p *trial) (pack.Contents, error) {
	c := pack.Contents{Version: r.version, Completions: map[string][]byte{}}
	for name, content := range map[string]*[]byte{
		"LICENSE": &c.License, "README.md": &c.Readme, "deploy/systemd/tenure@.service": &c.Unit,
	} {
		var err error
		if *content, err = t.read(name); err != nil {
			return c, err
		}
	}
	c.Readme = pack.AbsoluteLinks(c.Readme, r.version)
	var err error
	if c.Time, c.Maintainer, err = lastCommit(ctx, r.root, os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return c, err
	}
	built, err := p.buildPrograms(ctx, host)
	if err != nil {
		return c, err
	}
	for _, shell := range pack.Shells {
		script, err := p.run(ctx, p.folder, built[0].path, "completion", shell.Name)
		if err != nil {
			return c, err
		}
		c.Completions[shell.Name] = []byte(script)
	}
	c.Manual, err = p.manual(ctx, built, c.Time)
	return c, err
}

// manual is the manual pages that the programs write. The server's pages replace those of the
// commands with which the first program starts it.
func (p *trial) manual(ctx context.Context, built []program, date time.Time) ([]pack.File, error) {
	folder := filepath.Join(p.folder, "manual")
	environment := append(slices.Clip(p.environment), "SOURCE_DATE_EPOCH="+strconv.FormatInt(date.Unix(), 10))
	for _, b := range built {
		if _, err := output(ctx, p.folder, environment, b.path, "manual", folder); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var pages []pack.File
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		pages = append(pages, pack.File{Name: entry.Name(), Mode: 0o644, Content: content})
	}
	return pages, nil
}

// lastCommit is the time of the last commit, or the one that the environment sets,
// and its author.
func lastCommit(ctx context.Context, root, epoch string) (time.Time, string, error) {
	printed, err := git(ctx, root, "log", "-1", "--format=%ct%n%an <%ae>")
	if err != nil {
		return time.Time{}, "", err
	}
	seconds, author, _ := strings.Cut(strings.TrimSpace(printed), "\n")
	if epoch != "" {
		seconds = epoch
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, "", usagef("SOURCE_DATE_EPOCH is %q; it must be seconds since 1970", epoch)
	}
	return time.Unix(unix, 0).UTC(), author, nil
}

// replaceFolder replaces a folder in the root by files, when all are written.
func replaceFolder(root, name string, files []pack.File) (err error) {
	temporary := filepath.Join(root, "tmp") // on the same disk, and ignored by Git
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	written, err := os.MkdirTemp(temporary, name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(written)) }()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(written, f.Name), f.Content, f.Mode); err != nil {
			return err
		}
	}
	folder := filepath.Join(root, name)
	return errors.Join(os.Chmod(written, 0o755), os.RemoveAll(folder), os.Rename(written, folder))
}
