// Package secretfile reads files with secrets: tokens, passwords and keys.
package secretfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// The bits of a mode for access by others than the owner and the group, and for writing
// by the group.
const (
	others     fs.FileMode = 0o007
	groupWrite fs.FileMode = 0o020
)

// Read reads a regular file of at most so many bytes. It refuses a file if every user of
// the machine may read or write it, or if its group may write it. A group may read: so a
// service, or a pod with fsGroup, gets another owner's secret.
func Read(name string, most int) ([]byte, error) {
	info, err := os.Stat(name) // opening another kind of file could block
	if err != nil {
		return nil, err
	}
	if err := check(name, info); err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err == nil && len(content) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return content, errors.Join(err, file.Close())
}

func check(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	if mode, allowed := Modes(info); mode != allowed {
		return fmt.Errorf("%s is open to other users (mode %04o): run chmod %04o %s; in Kubernetes set defaultMode: 0440 and fsGroup",
			name, mode, allowed, name)
	}
	return nil
}

// Modes returns the mode of a file, and the rest of it without reading by other users and
// writing by the group.
func Modes(info fs.FileInfo) (mode, allowed fs.FileMode) {
	mode = info.Mode().Perm()
	if runtime.GOOS == "windows" { // the mode says nothing of who may read
		return mode, mode
	}
	return mode, mode &^ (others | groupWrite)
}
