package validate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const unitPath = root + "/deploy/systemd/tenure@.service"

// mostExposure is how exposed the unit may be, in tenths, as systemd-analyze
// security reckons.
const mostExposure = "20"

// installUnit writes the unit where nothing else is, with the built program in the
// place of the installed one, and returns the folder.
func installUnit(t *testing.T, change func(string) string) string {
	t.Helper()
	text, err := os.ReadFile(unitPath)
	if err != nil {
		t.Fatal(err)
	}
	const installed = "ExecStart=/usr/local/bin/tenure "
	if !strings.Contains(string(text), installed) {
		t.Fatalf("%s: no %s", unitPath, installed)
	}
	folder := t.TempDir()
	unit := change(strings.Replace(string(text), installed, "ExecStart="+program+" ", 1))
	if err := os.WriteFile(filepath.Join(folder, "tenure@.service"), []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// analyze runs systemd's checker, which .ci/prerequisites installs.
func analyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemd-analyze", append([]string{"--no-pager"}, args...)...).CombinedOutput()
	return string(out), err
}

// requireChecker skips a test, loudly, on a system that has no systemd at all.
func requireChecker(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make deep runs it")
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if _, err := exec.LookPath("apt-get"); err == nil || os.Getenv("CI") != "" {
			t.Fatal("systemd-analyze is missing: install the package systemd, or run make deep SLICE=deployments, which does")
		}
		t.Skip("NOT TESTED: this system has no systemd-analyze, the unit was not checked")
	}
}

func TestUnitIsValid(t *testing.T) {
	requireChecker(t)
	same := func(unit string) string { return unit }
	out, err := analyze(t, "--man=no", "verify", installUnit(t, same)+"/tenure@billing.service")
	if err != nil || strings.Contains(out, "tenure@") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = analyze(t, "security", "--offline=true", "--threshold="+mostExposure, installUnit(t, same)+"/tenure@.service")
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestCheckerFindsFaults: what the test above would say of a worse unit.
func TestCheckerFindsFaults(t *testing.T) {
	requireChecker(t)
	for name, change := range map[string]func(string) string{
		"unknown key":     func(unit string) string { return strings.Replace(unit, "WatchdogSec", "WatchdogSek", 1) },
		"unknown value":   func(unit string) string { return strings.Replace(unit, "Type=notify", "Type=notified", 1) },
		"missing program": func(unit string) string { return strings.Replace(unit, "/tenure run", "/tenure-not run", 1) },
	} {
		if out, _ := analyze(t, "--man=no", "verify", installUnit(t, change)+"/tenure@billing.service"); !strings.Contains(out, "tenure") {
			t.Errorf("%s is not found: %s", name, out)
		}
	}
	open := func(unit string) string { return strings.Replace(unit, "CapabilityBoundingSet=\n", "", 1) }
	if out, err := analyze(t, "security", "--offline=true", "--threshold="+mostExposure, installUnit(t, open)+"/tenure@.service"); err == nil {
		t.Errorf("a service with all capabilities is exposed no more than %s: %s", mostExposure, out)
	}
}

// TestCommandsOfTheUnitExist: the program has them.
func TestCommandsOfTheUnitExist(t *testing.T) {
	text, err := os.ReadFile(unitPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^Exec\w+=(\S*tenure .*)$`).FindAllStringSubmatch(string(text), -1) {
		checkCommand(t, "tenure@.service", strings.Fields(match[1]))
	}
	for _, setting := range []string{"Type=notify", "WatchdogSec=", "Restart=on-failure", "EnvironmentFile=", "ExecReload=", "KillMode=mixed"} {
		if !strings.Contains(string(text), "\n"+setting) {
			t.Errorf("the unit has no %s", setting)
		}
	}
}
