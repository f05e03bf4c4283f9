package sidecar

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// checkInterval is how often a file is read again, at most. It is read when it is
// needed only.
const checkInterval = time.Second

// maxFile is the size of the largest readable file, in bytes.
const maxFile = 1 << 20

// readFile reads a small regular file. Reading another kind again and again
// could block.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return content, errors.Join(err, file.Close())
}
