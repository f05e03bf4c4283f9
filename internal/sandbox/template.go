package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// template is a data directory that new servers start from: a copy takes a
// tenth of the time that making one does.
type template struct {
	once sync.Once
	path string
	err  error
}

var keepsTemplates atomic.Bool

// unused is how long a kept template stays that no process uses.
const unused = 7 * 24 * time.Hour

// KeepTemplates keeps the templates of this process for other processes and later
// runs, in a folder for temporary files. Who makes one removes those that were not used
// for a week.
func KeepTemplates() { keepsTemplates.Store(true) }

// CopyTemplate copies the data directory of a program, named by its path, to a
// new path. The first that asks for the program has it made at the path that
// initialize is given. The recipe is what else decides the result of initialize, such as
// its arguments.
func (s *Sandbox) CopyTemplate(ctx context.Context, program string, recipe []string, target string, initialize func(path string) error) error {
	s.mu.Lock()
	shared, ok := s.templates[program]
	if !ok {
		shared = &template{}
		s.templates[program] = shared
	}
	s.mu.Unlock()
	shared.once.Do(func() { shared.path, shared.err = s.makeTemplate(program, recipe, initialize) })
	if shared.err != nil {
		return shared.err
	}
	return s.Execute(ctx, "/bin/cp", "-a", shared.path, target)
}

// makeTemplate returns the path of a program's template.
func (s *Sandbox) makeTemplate(program string, recipe []string, initialize func(path string) error) (string, error) {
	kept := ""
	if keepsTemplates.Load() {
		var err error
		if kept, err = keptTemplate(program, recipe); err != nil {
			return "", err
		}
		now := time.Now()
		if err := os.Chtimes(kept, now, now); err == nil { // it is used
			return kept, nil
		}
		removeUnused(filepath.Dir(kept), now.Add(-unused))
	}
	directory, err := s.Place()
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, "template")
	if err := initialize(path); err != nil || kept == "" {
		return path, err
	}
	if err := os.Rename(path, kept); err != nil {
		if _, err := os.Stat(kept); err == nil { // another process was faster
			return kept, nil
		}
		return "", fmt.Errorf("keep a template: %w", err)
	}
	return kept, nil
}

// removeUnused removes the templates that were last used before a time. What cannot be
// removed stays for the next process.
func removeUnused(folder string, before time.Time) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if found, err := entry.Info(); err == nil && found.ModTime().Before(before) {
			_ = os.RemoveAll(filepath.Join(folder, entry.Name()))
		}
	}
}

// keptTemplate returns where the template of a program is kept. Another installation of
// the program and another recipe have another one. So has another boot of the machine,
// since nothing flushes a template to the disk.
func keptTemplate(program string, recipe []string) (string, error) {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("tenure-templates-%d", os.Geteuid()))
	err := os.Mkdir(folder, 0o755)
	if err == nil {
		err = os.Chmod(folder, 0o755) // the account that runs the servers reads it
	}
	if err != nil && !os.IsExist(err) {
		return "", err
	}
	if err := checkOwner(folder); err != nil {
		return "", err
	}
	version := ""
	if found, err := os.Stat(program); err == nil {
		version = fmt.Sprint(found.ModTime().UnixNano())
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // other systems have none
	sum := sha256.Sum256([]byte(strings.Join(append([]string{program, version, string(boot)}, recipe...), "\x00")))
	return filepath.Join(folder, hex.EncodeToString(sum[:8])), nil
}
