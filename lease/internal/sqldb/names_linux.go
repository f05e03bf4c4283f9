package sqldb

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func countLinks(_ string, info os.FileInfo) (uint64, error) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink), nil //nolint:unconvert // its type differs between architectures
	}
	return 1, nil
}

// isMounted reports whether a path is the root of a mount. Kernels before 5.8 and some
// sandboxes do not say so in statx, so there it searches the list of mounts.
func isMounted(path string) (bool, error) {
	var found unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_TYPE, &found)
	switch {
	case err == nil && found.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return found.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	case errors.Is(err, os.ErrNotExist):
		return false, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false, nil //nolint:nilerr // a process without /proc cannot find out
	}
	defer mounts.Close()
	return listsMount(mounts, path)
}

// checkRemains returns an error if this process has the removed log or index of a file
// open. Programs that open the file afterwards make others. Without /proc it cannot find
// out.
func checkRemains(path string) error {
	const open = "/proc/self/fd/"
	descriptors, err := os.ReadDir(open)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	for _, descriptor := range descriptors {
		switch target, _ := os.Readlink(open + descriptor.Name()); target { // it may be closed by now
		case path + "-shm (deleted)", path + "-wal (deleted)":
			return errReplaced(strings.TrimSuffix(target, " (deleted)"), nil)
		}
	}
	return nil
}

// listsMount reports whether a list of mounts, as in /proc/self/mountinfo, has a path.
func listsMount(mounts io.Reader, path string) (bool, error) {
	const place = 4 // of the mount point among the fields
	lines := bufio.NewScanner(mounts)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > place && unescape(fields[place]) == path {
			return true, nil
		}
	}
	return false, lines.Err()
}

// unescape replaces the escapes of mountinfo, such as \040 for a space.
func unescape(field string) string {
	var text strings.Builder
	for {
		before, after, found := strings.Cut(field, `\`)
		text.WriteString(before)
		if !found {
			return text.String()
		}
		const digits = 3
		code, err := strconv.ParseUint(after[:min(digits, len(after))], 8, 8)
		if err != nil {
			text.WriteByte('\\')
			field = after
			continue
		}
		text.WriteByte(byte(code))
		field = after[digits:]
	}
}
