//go:build unix

package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

func TestPasswordCommandPrintsOneLine(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`echo secret`:             "secret",
		`printf secret`:           "secret",
		`printf ' s ecret \r\n'`:  " s ecret ",
		`echo secret; sleep 60 &`: "", // the output stays open
	} {
		password, err := PasswordCommand(command)(t.Context())
		if password != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", command, password, err)
		}
	}
}

// What the command prints is in no error.
func TestPasswordCommandErrorsShowNoOutput(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`echo secret; exit 3`:         "exit status 3",
		`echo secret >&2; exit 3`:     "exit status 3",
		`echo secret; kill -9 $$`:     "signal: killed",
		`true`:                        "printed nothing",
		`echo secret; echo secret`:    "one line",
		`yes secret | head -c 100000`: "more than 65536 bytes",
		`/no/such/program secret`:     "exit status 127",
	} {
		password, err := PasswordCommand(command)(t.Context())
		switch {
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", command, err, want)
		case strings.Contains(err.Error(), "secret") || password != "":
			t.Errorf("%s: the error shows the output: %v", command, err)
		}
	}
}

// A command that hangs is killed with its descendants.
func TestPasswordCommandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "child")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	ended := make(chan error)
	go func() {
		_, err := PasswordCommand(`trap "" TERM; sleep 60 & echo $! > ` + file + `.new; mv ` + file + `.new ` + file + `; wait`)(ctx)
		ended <- err
	}()
	var text []byte
	testkit.Within(passwordTimeout, func() bool {
		text, _ = os.ReadFile(file) // it may not be there yet
		return len(text) > 0
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// A dead child waits for the system to reap it.
	if !testkit.Within(time.Until(began.Add(2*passwordTimeout)), func() bool { return syscall.Kill(pid, 0) != nil }) {
		t.Errorf("process %d of the password command still runs", pid)
	}
}

// A password command has 10 s to print the password.
func TestPasswordCommandMayTakeTenSeconds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	began := time.Now()
	_, err := PasswordCommand("exec sleep 60")(t.Context())
	if took := time.Since(began); took < 10*time.Second || took > 15*time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the password command was ended after %v (%v), want 10s (bound 15s)", took, err)
	}
}

func TestSQLiteTakesNoPasswordCommand(t *testing.T) {
	t.Parallel()
	if _, err := Parse("sqlite:a.db", PasswordCommand("echo secret")); err == nil || !strings.Contains(err.Error(), "no passwords") {
		t.Errorf("got %v", err)
	}
}

func TestPasswordCommandIsEndedAfterTenSeconds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	began := time.Now()
	_, err := PasswordCommand("sleep 60")(t.Context())
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "took longer than 10s") || took < 10*time.Second || took > 20*time.Second {
		t.Errorf("it took %v: %v; want it ended after 10s", took, err)
	}
}
