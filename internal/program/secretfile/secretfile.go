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

// The bits of a mode that let others than the owner and the group in, and the
// group write.
const (
	others     fs.FileMode = 0o007
	groupWrite fs.FileMode = 0o020
)

// Read reads a regular file of at most so many bytes. It refuses a file that every
// user of the machine may read or write, or that its group may write. A group may
// read: that is how a service, or a pod with fsGroup, gets a secret that it does
// not own.
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

// Modes returns the mode of a file, and what is left of it if no other user may read the
// file and its group may not write it.
func Modes(info fs.FileInfo) (mode, allowed fs.FileMode) {
	mode = info.Mode().Perm()
	if runtime.GOOS == "windows" { // the mode says nothing of who may read
		return mode, mode
	}
	return mode, mode &^ (others | groupWrite)
}
