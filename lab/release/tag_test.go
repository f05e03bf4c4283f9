package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTagIsDryByDefault(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	before := inGit(t, root, "rev-parse", "HEAD")
	var out strings.Builder
	if err := dryRun(root, "v0.1.0").tag(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"set the version in adapters/kafka/go.mod", "tag adapters/kafka/v0.1.0", "Only dist was changed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, out.String())
		}
	}
	if after := inGit(t, root, "rev-parse", "HEAD"); after != before {
		t.Errorf("the last commit is %s; want %s", after, before)
	}
	if status, tags := inGit(t, root, "status", "--porcelain"), inGit(t, root, "tag"); status != "" || tags != "" {
		t.Errorf("changed files %q and tags %q; want none", status, tags)
	}
}

// A trial needs no section for its version yet; a release does.
func TestTrialTakesNotesOfUnreleasedEntries(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	changelogWith("[Unreleased]\n\n## [0.1.0] - 2026-11-22", "[Unreleased]")(t, root)
	var out strings.Builder
	if err := dryRun(root, "v0.1.0").tag(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "rename [Unreleased] to [0.1.0] - DATE") {
		t.Errorf("it does not print what the release needs:\n%s", out.String())
	}
	if notes := readDist(t, root)["notes.md"]; !strings.Contains(notes, "- Everything.") {
		t.Errorf("notes: %q", notes)
	}
	if err := tagRepository(t, root, "v0.1.0"); !errors.Is(err, errNoSection) {
		t.Errorf("the release: %v; want %v", err, errNoSection)
	}
}

func TestTagSetsAllVersionsInOneCommit(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	if err := tagRepository(t, root, "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	want := "adapters/kafka/v0.1.0\nadapters/tracing/v0.1.0\ncmd/tenure/v0.1.0\ninternal/program/v0.1.0\nserver/v0.1.0\nv0.1.0"
	if tags := inGit(t, root, "tag", "--points-at", "HEAD"); tags != want {
		t.Errorf("tags of the last commit:\n%s\nwant:\n%s", tags, want)
	}
	if status := inGit(t, root, "status", "--porcelain"); status != "" {
		t.Errorf("files that are not committed: %s", status)
	}
	for _, folder := range []string{"cmd/tenure", "adapters/tracing", "adapters/kafka"} {
		if content := get(t, root, folder+"/go.mod"); !strings.Contains(content, library+" v0.1.0\n") {
			t.Errorf("%s/go.mod:\n%s", folder, content)
		}
	}
	if content := get(t, root, "go.work"); !strings.Contains(content, "// The version that is required.\nreplace "+library+" v0.1.0 => .") {
		t.Errorf("go.work:\n%s", content)
	}
	checkWithGo(t, root)
}

// checkWithGo lets the go command download tagged modules from the repository
// and compares its checksums with those that the release wrote.
func checkWithGo(t *testing.T, root string) {
	t.Helper()
	environment := append(os.Environ(),
		"GOENV=off", "GOWORK=off", "GOFLAGS=-modcacherw", "GOSUMDB=off", "GOPROXY=direct", "GOPRIVATE=", "GONOPROXY=",
		"GOMODCACHE="+filepath.Join(t.TempDir(), "modules"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+fileURL(root)+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+library,
	)
	download := func(path string) (sum, goModSum string) {
		t.Helper()
		text, err := output(t.Context(), t.TempDir(), environment, "go", "mod", "download", "-json", path+"@v0.1.0")
		if err != nil {
			t.Fatal(err)
		}
		var downloaded struct{ Sum, GoModSum string }
		if err := json.Unmarshal([]byte(text), &downloaded); err != nil {
			t.Fatal(err)
		}
		return downloaded.Sum, downloaded.GoModSum
	}
	sum, goModSum := download(library)
	want := library + " v0.1.0 " + sum + "\n" + library + " v0.1.0/go.mod " + goModSum + "\n"
	if got := get(t, root, "adapters/kafka/go.sum"); got != want {
		t.Errorf("adapters/kafka/go.sum:\n%swant:\n%s", got, want)
	}
	tree, err := committedTree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	kafka := goModule{folder: "adapters/kafka", path: library + "/adapters/kafka"}
	sums, err := tree.checksums(kafka, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if sum, _ := download(kafka.path); !strings.HasSuffix(sums[0], " "+sum) {
		t.Errorf("checksum of the archive: %s; want that of the go command: %s", sums[0], sum)
	}
}

func TestTagIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(t *testing.T, root string)
		version string
		want    string
	}{
		"file that is not committed": {func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "new.go", "package tenure\n")
		}, "v0.1.0", "not clean"},
		"change that is not committed": {func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "LICENSE", "Not free.\n")
		}, "v0.1.0", "not clean"},
		"version without a section":   {nil, "v0.2.0", "no section"},
		"section without entries":     {changelogWith("- Everything.\n", ""), "v0.1.0", "no entries"},
		"section without a date":      {changelogWith(" - 2026-11-22", ""), "v0.1.0", "no date"},
		"entries that are unreleased": {changelogWith("[Unreleased]\n", "[Unreleased]\n\n- More.\n"), "v0.1.0", "still under [Unreleased]"},
		"tag that exists":             {tagged("adapters/kafka/v0.1.0"), "v0.1.0", "exists already"},
		"lower version":               {tagged("v0.1.1"), "v0.1.0", "not higher"},
		"no version":                  {nil, "", "not a version"},
		"short version":               {nil, "v0.1", "not a version"},
		"version that needs a path":   {nil, "v2.0.0", "end in /v2"},
		"replaced module": {func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "adapters/kafka/go.mod", get(t, root, "adapters/kafka/go.mod")+"\nreplace "+library+" => ../..\n")
			commit(t, root)
		}, "v0.1.0", "replaces"},
		"module that does not compile": {func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "adapters/tracing/tracing.go", "package tracing\n\nconst Name = 1 + \"\"\n")
			commit(t, root)
		}, "v0.1.0", "build and run a user's program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newRepository(t)
			if test.prepare != nil {
				test.prepare(t, root)
			}
			before := inGit(t, root, "rev-parse", "HEAD") + inGit(t, root, "tag")
			err := tagRepository(t, root, test.version)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want one with %q", err, test.want)
			}
			if after := inGit(t, root, "rev-parse", "HEAD") + inGit(t, root, "tag"); after != before {
				t.Errorf("commit and tags: %s; want %s", after, before)
			}
		})
	}
}

func changelogWith(old, replacement string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Helper()
		put(t, root, "CHANGELOG.md", strings.Replace(changelog, old, replacement, 1))
		commit(t, root)
	}
}

func tagged(name string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Helper()
		inGit(t, root, "tag", name)
	}
}
