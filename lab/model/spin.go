package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// findSpin returns the program spin: that of TENURE_SPIN, an installed one, or Debian's
// package, which is unpacked once into a folder. That needs no root.
func findSpin(ctx context.Context, folder string) (string, error) {
	if named := os.Getenv("TENURE_SPIN"); named != "" {
		return named, nil
	}
	if installed, err := exec.LookPath("spin"); err == nil {
		return installed, nil
	}
	unpacked := filepath.Join(folder, "usr", "bin", "spin")
	if _, err := os.Stat(unpacked); err == nil {
		return unpacked, nil
	}
	if err := unpack(ctx, folder); err != nil {
		return "", fmt.Errorf("no program spin, and its package cannot be unpacked: install spin, or name the program in TENURE_SPIN: %w", err)
	}
	return unpacked, nil
}

// unpack downloads Debian's package and unpacks it. If apt knows no packages, it reads
// their lists into the folder first.
func unpack(ctx context.Context, folder string) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	state := filepath.Join(folder, "apt")
	for _, needed := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(state, needed), 0o755); err != nil {
			return err
		}
	}
	own := []string{"-o", "Dir::State::Lists=" + filepath.Join(state, "lists"), "-o", "Dir::Cache=" + filepath.Join(state, "cache")}
	err := in(ctx, state, "apt-get", "download", "spin")
	if err != nil {
		again := in(ctx, state, "apt-get", append(own, "update")...)
		if again == nil {
			again = in(ctx, state, "apt-get", append(own, "download", "spin")...)
		}
		if again != nil {
			return errors.Join(err, again)
		}
	}
	packages, err := filepath.Glob(filepath.Join(state, "spin_*.deb"))
	if err != nil || len(packages) == 0 {
		return errors.Join(err, errors.New("apt-get has downloaded no package"))
	}
	if err := in(ctx, folder, "dpkg-deb", "-x", packages[len(packages)-1], folder); err != nil {
		return err
	}
	return os.RemoveAll(state)
}

// in runs a program in a folder.
func in(ctx context.Context, folder, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, output)
	}
	return nil
}
