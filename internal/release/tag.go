package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// tag releases all modules at one version. It sets the version of the library that
// the other modules require, checks that they can be installed, commits, and tags
// every module. Without commit it only prints what it would do. It pushes nothing.
func tag(ctx context.Context, out io.Writer, root, version string, commit bool) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	t, err := committedTree(ctx, root)
	if err != nil {
		return err
	}
	changelog, err := t.read("CHANGELOG.md")
	if err != nil {
		return err
	}
	if err := checkChangelog(string(changelog), version); err != nil {
		return err
	}
	tags, err := newTags(ctx, t, version)
	if err != nil {
		return err
	}
	if err := t.setVersion(version); err != nil {
		return err
	}
	plan(out, t, tags, version)
	if !commit {
		fmt.Fprintf(out, "Nothing was changed. To do it: make release VERSION=%s ARGS=-commit\n", version)
		return nil
	}
	if err := checkTree(ctx, out, t, version); err != nil {
		return err
	}
	if err := commitAndTag(ctx, t, tags, version); err != nil {
		return err
	}
	fmt.Fprintf(out, "Done. Nothing was pushed. To publish: git push --atomic origin HEAD %s\n", strings.Join(tags, " "))
	return nil
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
