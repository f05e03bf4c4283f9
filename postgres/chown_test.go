//go:build unix

package postgres

import (
	"os"
	"syscall"
	"testing"
)

// chownLike gives a file to the owner of another.
func chownLike(t *testing.T, path string, like os.FileInfo) {
	t.Helper()
	stat := like.Sys().(*syscall.Stat_t)
	if err := os.Chown(path, int(stat.Uid), int(stat.Gid)); err != nil {
		t.Fatal(err)
	}
}
