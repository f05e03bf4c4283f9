package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed vitepress
var embedded embed.FS

// siteData is what the configuration of VitePress reads.
type siteData struct {
	Base        string    `json:"base"`
	Out         string    `json:"out"`
	Version     string    `json:"version"`
	Versions    string    `json:"versions"`
	Repository  string    `json:"repository"`
	Description string    `json:"description"`
	Menu        []section `json:"menu"`
}

// build writes the site of one version.
func build(ctx context.Context, s settings, docs documents) error {
	out, err := filepath.Abs(filepath.Join(s.out, s.version))
	if err != nil {
		return err
	}
	if err := install(ctx, s.work); err != nil {
		return err
	}
	pages := filepath.Join(s.work, "pages")
	if err := stage(pages, docs, siteData{
		Base: s.prefix(), Out: out, Version: s.version, Versions: s.base + "versions.html",
		Repository: repository, Description: "Leader election and cluster coordination on PostgreSQL", Menu: docs.menu,
	}); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return command(ctx, s.work, filepath.Join("node_modules", ".bin", "vitepress"), "build", "pages")
}

// install installs the locked packages of VitePress into a folder, unless it has them.
// No script of a package runs.
func install(ctx context.Context, folder string) error {
	const lock = "package-lock.json"
	wanted, err := embedded.ReadFile("vitepress/" + lock)
	if err != nil {
		return err
	}
	marker := filepath.Join(folder, "installed.json")
	if installed, err := os.ReadFile(marker); err == nil && bytes.Equal(installed, wanted) {
		return nil
	}
	manifest, err := embedded.ReadFile("vitepress/package.json")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"package.json": manifest, lock: wanted} {
		if err := write(filepath.Join(folder, name), content); err != nil {
			return err
		}
	}
	fmt.Println("Installing VitePress, once (100 MB)")
	if err := command(ctx, folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return fmt.Errorf("VitePress cannot be installed; it needs Node.js 18 or later with npm: %w", err)
	}
	return write(marker, wanted)
}

// stage writes the input of VitePress into a folder.
func stage(folder string, docs documents, data siteData) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	files := map[string][]byte{}
	for name, text := range docs.pages {
		files[name] = []byte(text)
	}
	for name, content := range docs.images {
		files[name] = content
	}
	for _, name := range []string{"config.mjs", "theme/index.mjs", "theme/style.css"} {
		content, err := fs.ReadFile(embedded, "vitepress/"+name)
		if err != nil {
			return err
		}
		files[".vitepress/"+name] = content
	}
	content, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return err
	}
	files[".vitepress/site.json"] = content
	for name, content := range files {
		if err := write(filepath.Join(folder, filepath.FromSlash(name)), content); err != nil {
			return err
		}
	}
	return nil
}

func write(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// command runs a program in a folder, and shows its output if it fails.
func command(ctx context.Context, folder, name string, args ...string) error {
	if filepath.Base(name) != name {
		path, err := filepath.Abs(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		name = path
	}
	program := exec.CommandContext(ctx, name, args...)
	program.Dir = folder
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	program.WaitDelay = 10 * time.Second
	if output, err := program.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, output)
	}
	return nil
}
