package guardian

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes this process the parent of every orphaned descendant.
func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// commandAttributes puts the command into its own process group and makes the kernel kill
// it with its parent thread.
func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// children lists the children of a process, including ended ones that were not waited for.
// The list can miss a child if others end at the same time. A process that has ended has
// none. An error, for example because all descriptors of this process are used, means that
// the children are not known.
func children(pid int) ([]int, error) {
	folder := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := os.ReadDir(folder)
	if err != nil {
		return nil, unlessEnded(err)
	}
	var found []int
	lists := 0
	for _, thread := range threads {
		text, err := os.ReadFile(folder + thread.Name() + "/children")
		if unlessEnded(err) != nil {
			return nil, err
		}
		if err != nil {
			continue // the thread has ended, or the kernel has no such lists
		}
		lists++
		for _, field := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				found = append(found, child)
			}
		}
	}
	if lists == 0 {
		return childrenByParent(pid)
	}
	return found, nil
}

// unlessEnded returns err, or nil if err says that the process or thread has ended.
func unlessEnded(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// childrenByParent searches all processes, for kernels without a list of children.
func childrenByParent(parent int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if unlessEnded(err) != nil && !errors.Is(err, fs.ErrPermission) { // those of other users can be hidden
			return nil, err
		}
		// "PID (NAME) STATE PPID ...": the name may contain any characters.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(parent) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// descendants lists all descendants of a process, parents first, except some of
// its children and their descendants. With an error, the list may be incomplete.
func descendants(pid int, without []int) ([]int, error) {
	found, failure := children(pid)
	found = slices.DeleteFunc(found, func(child int) bool { return slices.Contains(without, child) })
	for i := 0; i < len(found); i++ {
		more, err := children(found[i])
		failure = cmp.Or(failure, err)
		for _, child := range more {
			if !slices.Contains(found, child) {
				found = append(found, child)
			}
		}
	}
	return found, failure
}

// signalLeft signals every descendant, except members of an already signaled group.
func signalLeft(group int, signaled bool, signal syscall.Signal) {
	found, _ := descendants(os.Getpid(), nil) // whatever is left is killed later
	for _, pid := range found {
		if signaled {
			if its, err := syscall.Getpgid(pid); err == nil && its == group {
				continue
			}
		}
		_ = syscall.Kill(pid, signal) // it may have ended
	}
}

// killTree kills a group, unless its leader was waited for, and every
// descendant.
func killTree(group int, leaderEnded bool) {
	if !leaderEnded { // the process id cannot have been reused yet
		_ = syscall.Kill(-group, syscall.SIGKILL) // all members at the same instant
	}
	found, _ := descendants(os.Getpid(), nil) // the next call kills the rest
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// groupEmpty reports whether a group has no member. With a subreaper this is
// not needed: a process without children has no descendants.
func groupEmpty(int) bool { return true }

// killOrphans kills all descendants of this process, except some of its children and
// theirs. It waits for the killed ones that became its children. It reports whether there
// were none: an ending orphan hands its own children to this process after these could be
// listed. Because a list can miss a child, only a second empty list is proof.
func killOrphans(without []int) bool {
	self := os.Getpid()
	orphans, err := descendants(self, without)
	for _, orphan := range orphans {
		_ = syscall.Kill(orphan, syscall.SIGKILL)
	}
	for _, orphan := range orphans {
		_, _ = syscall.Wait4(orphan, nil, syscall.WNOHANG, nil) // it may still live, or be another's child
	}
	if err != nil || len(orphans) > 0 {
		return false
	}
	orphans, err = descendants(self, without)
	return err == nil && len(orphans) == 0
}
