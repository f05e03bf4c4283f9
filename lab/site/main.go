package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// timeout bounds an installation of VitePress and a build.
const timeout = 15 * time.Minute

// unreleased is the version, and the branch, of documents that no release has.
const unreleased = "main"

// settings are what a build depends on, apart from the pages.
type settings struct {
	version string // a tag or unreleased; also the folder
	base    string // the path under which a server has the site, with slashes around it
	out     string // the folder of all versions
	work    string // a folder for VitePress and its input
}

// prefix is the path of the version's first page on the server.
func (s settings) prefix() string { return s.base + s.version + "/" }

var (
	releaseTag = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	basePath   = regexp.MustCompile(`^/([\w.~-]+/)*$`)
)

func (s settings) validate() error {
	if s.version != unreleased && !releaseTag.MatchString(s.version) {
		return fmt.Errorf("the version is %q; it must be a tag such as v0.1.0", s.version)
	}
	if !basePath.MatchString(s.base) {
		return fmt.Errorf("the base is %q; it must be a path that begins and ends with a slash", s.base)
	}
	return nil
}

func main() {
	s := settings{}
	flag.StringVar(&s.version, "version", "", "the `tag` that the documents are released with (default: they are not released)")
	flag.StringVar(&s.base, "base", "/", "the `path` under which a server has the site")
	flag.StringVar(&s.out, "out", filepath.Join("dist", "site"), "the `folder` for all versions")
	flag.StringVar(&s.work, "work", filepath.Join("bin", "vitepress"), "the `folder` for VitePress and its input")
	flag.Parse()
	s.version = cmp.Or(s.version, unreleased)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	err := run(ctx, s)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// run builds and checks one version of the site, and lists all versions.
func run(ctx context.Context, s settings) error {
	if err := s.validate(); err != nil {
		return err
	}
	docs, err := readDocuments(os.DirFS("."), s.version)
	if err != nil {
		return err
	}
	if err := build(ctx, s, docs); err != nil {
		return err
	}
	folder := filepath.Join(s.out, s.version)
	faults, err := check(os.DirFS(folder), s.prefix(), docs)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s:\n%s", folder, strings.Join(faults, "\n"))
	}
	if err := listVersions(s.out); err != nil {
		return err
	}
	fmt.Printf("%s: %d pages\n", folder, len(docs.pages))
	return nil
}
