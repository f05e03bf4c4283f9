//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// account is who runs the server's programs; nil means the present user.
type account struct {
	uid, gid uint32
}

// unprivileged returns the account to run servers as: if this process is root,
// the first of the named ones that the machine has. The servers' programs look
// their user up, so the account must exist.
func unprivileged(names []string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		entry, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(entry.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(entry.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		return &account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("database servers do not run as root, and there is no account %s to run them as",
		strings.Join(names, " or "))
}

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// checkOwner refuses a folder that another user of the machine may write.
func checkOwner(folder string) error {
	const others = 0o022
	found, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	stat, ok := found.Sys().(*syscall.Stat_t)
	if !ok || !found.IsDir() || found.Mode()&others != 0 || int64(stat.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("%s must be a folder that only this user may write: remove it", folder)
	}
	return nil
}

// run makes a command run as the account, in a new Unix session, so that an
// interrupt at the terminal reaches only the process that owns the sandbox.
func (a *account) run(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a != nil {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}
