//go:build linux

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A supervisor, its guardian and the command are stopped for longer than the
// lease, as a container's pause does. Another node leads. When they resume, the
// command is dead within 500 ms, and half of the time within 50 ms: other programs on
// the machine delay some of the kills, and a wait in the program delays all of them.
func TestFrozenCommandDiesWhenResumed(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	c := newContest(t, newPlace(t), "--lease", "1s", "--grace", "100ms")
	for range 3 {
		name := "node-" + strconv.Itoa(c.entered)
		c.supervisors[name] = c.enter(name, childUnguarded, childStubborn)
		c.entered++
	}
	c.leader = c.next()
	var deaths []time.Duration
	for range 7 {
		frozen := c.leader
		processes := []int{frozen.PID, frozen.Guardian, c.supervisors[frozen.Node].command.Process.Pid}
		handle, err := unix.PidfdOpen(frozen.PID, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range slices.Backward(processes) {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		c.follow(c.another())
		woken := time.Now()
		for _, pid := range processes {
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		awaitDeath(t, handle)
		deaths = append(deaths, time.Since(woken))
	}
	slices.Sort(deaths)
	t.Logf("the command died after %v", deaths)
	if median := deaths[len(deaths)/2]; median > 50*time.Millisecond {
		t.Errorf("after it was woken, the command lived for %v half of the time, want at most 50ms", median)
	}
	if longest := deaths[len(deaths)-1]; longest > 500*time.Millisecond {
		t.Errorf("after it was woken, the command lived for %v, want at most 500ms", longest)
	}
}

// awaitDeath waits until the process of a descriptor has ended, and closes it.
func awaitDeath(t *testing.T, handle int) {
	t.Helper()
	for limit := time.Now().Add(patience); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, int(time.Until(limit).Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			t.Fatalf("the process does not end: %v", err)
		default:
			if err := unix.Close(handle); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// outputSize is how much a command writes in the tests of its output.
const outputSize = 100 << 20

// pattern makes a file of outputSize bytes that do not repeat soon.
func pattern(t testing.TB) (path string, sum [sha256.Size]byte) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "pattern")
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	block := make([]byte, 1<<20)
	for i := range outputSize / len(block) {
		for j := range block {
			block[j] = byte(j*7 + j>>8 + i)
		}
		if _, err := io.MultiWriter(file, hash).Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name(), [sha256.Size]byte(hash.Sum(nil))
}

// throughput runs a program whose command copies a file of outputSize bytes to
// standard output, through a pipe into another program, and returns what the
// command reports, in megabytes per second. The command waits until the program that
// started it is idle.
func throughput(t testing.TB, path string, program ...string) float64 {
	t.Helper()
	report := path + ".report"
	copying := []string{"sh", "-c", `sleep 0.2; dd bs=64k if="$0" 2>"$0".report`, path}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", `"$0" "$@" | wc -c`}, append(program, copying...)...)...)
	command.Env = environment("LC_ALL=C")
	output, err := command.Output()
	if err != nil || strings.TrimSpace(string(output)) != strconv.Itoa(outputSize) {
		t.Fatalf("%s bytes, %v", output, err)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), " copied, ")
	seconds, err := strconv.ParseFloat(strings.Fields(last)[0], 64)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return outputSize / 1e6 / seconds
}

// No process copies the command's output. Every byte arrives, and the command
// reads and writes the same pipes that its supervisor was given.
func TestCommandOutputIsNotCopied(t *testing.T) {
	pgtest.Long(t)
	path, sum := pattern(t)
	supervisor := append(append([]string{os.Args[0]}, newPlace(t).with("run", "--role", "billing")...), "--")
	hash := sha256.New()
	runAs(t, supervisor, nil, hash, nil, "cat", path)
	if [sha256.Size]byte(hash.Sum(nil)) != sum {
		t.Error("the output is not what the command wrote")
	}

	var ends [3]*os.File // of the pipes that the supervisor is given
	var want []string
	for i := range ends {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		ends[i] = w
		if i == 0 {
			ends[i] = r
		}
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", w.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	found := t.TempDir() + "/found"
	runAs(t, supervisor, ends[0], ends[1], ends[2],
		"sh", "-c", `found=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); echo "$found" >"$0"`, found)
	text, err := os.ReadFile(found)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(text)); !slices.Equal(got, want) {
		t.Errorf("the command has %v as its input, output and errors; want %v", got, want)
	}
}

// runAs runs a command under a supervisor.
func runAs(t *testing.T, supervisor []string, stdin io.Reader, stdout, stderr io.Writer, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, supervisor[0], append(supervisor[1:], args...)...)
	command.Env, command.Stdin, command.Stdout, command.Stderr = environment(), stdin, stdout, stderr
	if err := command.Run(); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}

// BenchmarkCommandOutput compares the output of a command under a supervisor with
// that through a plain pipe.
func BenchmarkCommandOutput(b *testing.B) {
	path, _ := pattern(b)
	supervisor := append(append([]string{os.Args[0]}, newPlace(b).with("run", "--role", "billing")...), "--")
	var plain, guarded []float64
	for b.Loop() {
		plain = append(plain, throughput(b, path, "env"))
		guarded = append(guarded, throughput(b, path, supervisor...))
	}
	slices.Sort(plain)
	slices.Sort(guarded)
	middle := len(plain) / 2
	b.ReportMetric(plain[middle], "plain-MB/s")
	b.ReportMetric(guarded[middle], "guarded-MB/s")
	b.ReportMetric(guarded[middle]/plain[middle], "ratio")
}

// The test measures what a supervisor and its guardian cost while the command
// runs. The bounds leave room for a machine under load, for a slow one, where
// the supervisor takes 0.5 % of a core, and for the race detector.
func TestIdleSupervisorCostsLittle(t *testing.T) {
	pgtest.Long(t)
	program := buildProgram(t)
	c := newArena(t, newPlace(t))
	const watched = 10 * time.Second
	args := append(c.place.with("run", "--role", "billing"), "--", os.Args[0], asChild)
	node := launchProgram(t, program, c.env, args...)
	news := c.next()
	processes := map[string]int{"supervisor": node.command.Process.Pid, "guardian": news.Guardian}
	before := map[string]time.Duration{}
	for name, pid := range processes {
		before[name] = processorTime(t, pid)
	}
	c.none(watched)
	for name, pid := range processes {
		used := processorTime(t, pid) - before[name]
		// The program's file is most of it, and the kernel decides how much of the file is
		// mapped; memory that the two processes share counts by half.
		resident := memory(t, pid, "smaps_rollup", "Pss")
		t.Logf("%s: %.1f MB resident, %.1f MB with its part of what is shared, of them %.1f MB its own; %.3f %% of a core", name,
			memory(t, pid, "status", "VmRSS"), resident, memory(t, pid, "status", "RssAnon"), 100*used.Seconds()/watched.Seconds())
		if used > watched/100 {
			t.Errorf("the %s used %v in %v", name, used, watched)
		}
		if resident > 20 {
			t.Errorf("the %s has %.1f MB resident, with its part of what is shared", name, resident)
		}
	}
}

// buildProgram builds the program as it ships, or with more flags of go build.
func buildProgram(t *testing.T, flags ...string) string {
	t.Helper()
	path := t.TempDir() + "/tenure"
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	arguments := append(append([]string{"build", "-o", path}, flags...), "../..")
	if output, err := exec.CommandContext(ctx, "go", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return path
}

// processorTime is the time for which threads of a process ran.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	var total time.Duration
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
		if err != nil {
			t.Fatal(err)
		}
		nanoseconds, err := strconv.ParseInt(string(bytes.Fields(text)[0]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += time.Duration(nanoseconds)
	}
	return total
}

// memory is a line of /proc about the memory of a process, in megabytes.
func memory(t *testing.T, pid int, file, name string) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, name+":"); found {
			kilobytes, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes / 1000
		}
	}
	t.Fatalf("no %s of %d", name, pid)
	return 0
}
