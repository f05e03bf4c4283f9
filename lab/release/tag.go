package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/exactly-one/tenure/lab/release/pack"
)

// release is the version of all modules that is to be published.
type release struct {
	root    string
	version string
	commit  bool // change files, commit and tag
	targets []pack.Target
}

// tag releases all modules at one version. It sets the version of the library that
// the other modules require, makes the files to publish, commits, and tags every
// module. Without commit it changes no file of the repository, and makes the files
// to publish. It pushes nothing.
func (r release) tag(ctx context.Context, out io.Writer) error {
	t, tags, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	plan(out, t, tags, r.version)
	if r.commit {
		if err := checkTree(ctx, out, t, r.version); err != nil {
			return err
		}
	}
	if err := r.makeDist(ctx, out, t); err != nil {
		return fmt.Errorf("%s: %w", distFolder, err)
	}
	if !r.commit {
		fmt.Fprintf(out, "Only %s was changed. To commit and tag: make release VERSION=%s ARGS=-commit\n", distFolder, r.version)
		return nil
	}
	if err := commitAndTag(ctx, t, tags, r.version); err != nil {
		return err
	}
	fmt.Fprintf(out, "Done. Nothing was pushed. To publish: git push --atomic origin HEAD %s\n", strings.Join(tags, " "))
	return nil
}

// prepare returns the committed files with the version set in them, and the tags.
func (r release) prepare(ctx context.Context) (*tree, []string, error) {
	if err := checkVersion(r.version); err != nil {
		return nil, nil, err
	}
	t, err := committedTree(ctx, r.root)
	if err != nil {
		return nil, nil, err
	}
	changelog, err := t.read("CHANGELOG.md")
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := r.notesHeading(string(changelog)); err != nil {
		return nil, nil, err
	}
	tags, err := newTags(ctx, t, r.version)
	if err != nil {
		return nil, nil, err
	}
	err = t.setVersion(r.version)
	return t, tags, err
}

// newTags are the tags of a version. None may exist, and no higher version.
func newTags(ctx context.Context, t *tree, version string) ([]string, error) {
	all, err := t.modules()
	if err != nil {
		return nil, err
	}
	existing, err := git(ctx, t.root, "tag", "--list")
	if err != nil {
		return nil, err
	}
	tags := []string{}
	for _, m := range all {
		if m.published() {
			tags = append(tags, m.tagName(version))
		}
	}
	for _, name := range strings.Fields(existing) {
		if slices.Contains(tags, name) {
			return nil, fmt.Errorf("the tag %s exists already: a version is published once", name)
		}
		if semver.Compare(name, version) > 0 {
			return nil, fmt.Errorf("%s is not higher than %s, which is tagged", version, name)
		}
	}
	return tags, nil
}

func plan(out io.Writer, t *tree, tags []string, version string) {
	fmt.Fprintf(out, "Release %s\n", version)
	for _, name := range t.changedNames() {
		fmt.Fprintf(out, "  set the version in %s\n", name)
	}
	for _, name := range tags {
		fmt.Fprintf(out, "  tag %s\n", name)
	}
}

func commitAndTag(ctx context.Context, t *tree, tags []string, version string) error {
	if err := t.write(); err != nil {
		return err
	}
	if changed := t.changedNames(); len(changed) > 0 {
		words := append([]string{"commit", "--quiet", "--message", "build: release " + version, "--"}, changed...)
		if _, err := git(ctx, t.root, words...); err != nil {
			return err
		}
	}
	for _, name := range tags {
		if _, err := git(ctx, t.root, "tag", "--annotate", "--message", name, name); err != nil {
			return err
		}
	}
	return nil
}
