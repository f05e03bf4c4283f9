//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// freezers are control groups, one for each node, that can be frozen as a paused
// container is.
type freezers struct{ groups []string }

// newFreezers makes control groups, or returns nil where that cannot be done.
func newFreezers(nodes int) *freezers {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
			continue
		}
		f := new(freezers)
		for i := range nodes {
			group := filepath.Join(root, fmt.Sprintf("tenure-chaos-%d-%d", os.Getpid(), i+1))
			if err := os.Mkdir(group, 0o755); err != nil {
				break
			}
			f.groups = append(f.groups, group)
		}
		if len(f.groups) == nodes {
			return f
		}
		for _, group := range f.groups {
			_ = os.Remove(group) // it is empty
		}
	}
	return nil
}

func (f *freezers) paths() []string {
	if f == nil {
		return nil
	}
	return f.groups
}

// add puts a process into the group of a node, counted from 1.
func (f *freezers) add(number, pid int) error {
	if f == nil {
		return nil
	}
	return f.write(number, "cgroup.procs", strconv.Itoa(pid))
}

// freeze stops the processes of a node, or lets them continue.
func (f *freezers) freeze(number int, frozen bool) error {
	value := "0"
	if frozen {
		value = "1"
	}
	return f.write(number, "cgroup.freeze", value)
}

func (f *freezers) write(number int, file, value string) error {
	return os.WriteFile(filepath.Join(f.groups[number-1], file), []byte(value), 0o644) //nolint:gosec // a file of the kernel
}
