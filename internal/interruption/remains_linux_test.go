package interruption

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mark is the variable that the processes of a target have in their environment, unless
// they run in a sandbox: those have the folder for temporary files in their command line
// or as their working directory, or descend from one that has.
const mark = "TENURE_INTERRUPTION"

// traces finds what a target has made.
type traces struct {
	marked    string          // of the environment
	temporary string          // TMPDIR of the target
	build     string          // GOTMPDIR of the target
	owners    map[int]bool    // every process that was seen
	memory    map[string]bool // shared memory that the processes had mapped
}

func newTraces(t *testing.T) *traces {
	t.Helper()
	// Other accounts pass through, and the paths of sockets must be short.
	temporary, err := os.MkdirTemp("", "int-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })  // the test has reported what is left
	if err := os.Chmod(temporary, 0o711); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	return &traces{
		marked: mark + "=" + temporary, temporary: temporary, build: t.TempDir(), owners: map[int]bool{}, memory: map[string]bool{},
	}
}

// process is a process that belongs to a target.
type process struct {
	pid  int
	name string // as the kernel has it, at most 15 bytes
	line string
}

// processes lists the processes of the target.
func (r *traces) processes() []process {
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	var all []process
	for _, folder := range folders {
		environment, _ := os.ReadFile(filepath.Join(folder, "environ")) // the process may have ended
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		directory, _ := os.Readlink(filepath.Join(folder, "cwd"))
		if !strings.Contains(string(environment), r.marked) && !strings.Contains(string(line), r.temporary) && !strings.HasPrefix(directory, r.temporary) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(folder)) // the pattern has digits only
		name, err := os.ReadFile(filepath.Join(folder, "comm"))
		if err != nil || pid == os.Getpid() {
			continue
		}
		all = append(all, process{pid, strings.TrimSpace(string(name)), strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))})
		r.owners[pid] = true
		r.noteMemory(folder)
	}
	return all
}

// noteMemory notes the shared memory of the server that a process has mapped.
func (r *traces) noteMemory(folder string) {
	mappings, _ := os.ReadFile(filepath.Join(folder, "maps")) // the process may have ended
	for line := range strings.Lines(string(mappings)) {
		if _, name, found := strings.Cut(strings.TrimSpace(line), "/dev/shm/PostgreSQL."); found && !strings.HasSuffix(name, "(deleted)") {
			r.memory["/dev/shm/PostgreSQL."+name] = true
		}
	}
}

// left lists what is left of the target.
func (r *traces) left() []string {
	var all []string
	for _, p := range r.processes() {
		all = append(all, fmt.Sprintf("process %d: %s", p.pid, p.line))
	}
	for _, folder := range []string{r.temporary, r.build} {
		files, _ := filepath.Glob(filepath.Join(folder, "*"))
		for _, file := range files {
			if !strings.HasPrefix(filepath.Base(file), "tenure-templates-") { // kept on purpose, for other runs
				all = append(all, file)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, r.temporary) {
			all = append(all, "mount "+strings.TrimSpace(line))
		}
	}
	for pid := range r.owners {
		for _, pattern := range []string{"/run/netns/tn%d[a-z]-*", "/sys/class/net/tn%d[a-z]*", "/sys/fs/cgroup/tenure-chaos-%d-*", "/sys/fs/cgroup/unified/tenure-chaos-%d-*"} {
			found, _ := filepath.Glob(fmt.Sprintf(pattern, pid))
			all = append(all, found...)
		}
	}
	all = append(append(all, r.memoryFiles()...), r.memorySegments()...)
	slices.Sort(all)
	return all
}

// memoryFiles lists the noted files of shared memory that exist. A killed server
// leaves them.
func (r *traces) memoryFiles() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(r.memory)), func(file string) bool {
		_, err := os.Stat(file)
		return err != nil
	})
}

// memorySegments lists System V shared memory that a process of the target made.
func (r *traces) memorySegments() []string {
	var all []string
	segments, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range strings.Lines(string(segments)) {
		fields := strings.Fields(line) // key, id, mode, size, creator, …
		if creator, err := strconv.Atoi(fields[4]); err == nil && r.owners[creator] {
			all = append(all, "System V shared memory "+fields[1])
		}
	}
	return all
}
