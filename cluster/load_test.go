package cluster

import (
	"io/fs"
	"os"
	"runtime"
	"testing"
	"testing/fstest"
	"time"
)

// overlay is the machine's file system with some files replaced.
type overlay struct {
	own   fstest.MapFS
	below fs.FS
}

func (o overlay) Open(name string) (fs.File, error) {
	if _, ok := o.own[name]; ok {
		return o.own.Open(name)
	}
	return o.below.Open(name)
}

func TestMeterMeasuresABusyProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load is measured on Linux only")
	}
	// A tenth of one processor is all that this process may use, and it uses much
	// of one: nothing else decides the result, however busy the machine is.
	meter, err := newMeter(overlay{files(map[string]string{
		"proc/self/cgroup":         "0::/\n",
		"sys/fs/cgroup/cpu.max":    "10000 100000\n",
		"sys/fs/cgroup/memory.max": "68719476736\n",
	}), os.DirFS("/")})
	if err != nil {
		t.Fatal(err)
	}
	busy(t, meter, 50*time.Millisecond)
	cpu, memory, err := meter.measure()
	if err != nil {
		t.Fatal(err)
	}
	if cpu < 20 {
		t.Errorf("a busy process uses %v %% of a tenth of a processor", cpu)
	}
	if memory <= 0 || memory > 100 {
		t.Errorf("it uses %v %% of the memory", memory)
	}
}

// busy keeps a processor busy until the process has used some of its time.
func busy(t *testing.T, meter *meter, atLeast time.Duration) {
	t.Helper()
	probe := *meter
	for deadline := time.Now().Add(20 * time.Second); ; {
		for i, sum := 0, 0; i < 1e6; i++ {
			sum += i * sum
		}
		switch err := probe.readProcessorTime(); {
		case err != nil:
			t.Fatal(err)
		case probe.spent-meter.spent >= atLeast.Seconds():
			return
		case time.Now().After(deadline):
			t.Fatal("the process gets no processor time")
		}
	}
}

// statOf is the stat file of a process whose name contains what usually ends the name.
const statOf = "4711 (a ) S 1 (b) S 1 4711 4711 0 -1 4194560 900 0 3 0 250 50 0 0 20 0 9 0 1 1 1"

func TestMeterReadsProcessorTime(t *testing.T) {
	t.Parallel()
	meter, err := newMeter(files(map[string]string{"proc/self/stat": statOf}))
	if err != nil || meter.spent != 3 {
		t.Errorf("the process used %v s of the processors, %v; want 3", meter.spent, err)
	}
}

func TestMeterAppliesTheMemoryLimit(t *testing.T) {
	t.Parallel()
	meter := &meter{root: files(map[string]string{
		"proc/meminfo":     "MemTotal:       16384000 kB\nMemFree:         1000000 kB\n",
		"proc/self/status": "Name:\tVmRSS:\nVmHWM:\t  999999 kB\nVmRSS:\t  819200 kB\n",
	})}
	const resident, machine = 819200 << 10, 16384000 << 10
	for limit, want := range map[float64]float64{0: 5, machine * 10: 5, resident * 2: 50, 1: 100} {
		if got, err := meter.memory(limit); got != want || err != nil {
			t.Errorf("with a limit of %v bytes the process uses %v %%, %v; want %v %%", limit, got, err, want)
		}
	}
}

func TestMeterRejectsUnreadableFiles(t *testing.T) {
	t.Parallel()
	for _, stat := range []string{"", "1 (a) S 1 1 1", "1 (a) S 1 1 1 0 -1 1 1 0 0 0 many 0 0"} {
		if _, err := newMeter(files(map[string]string{"proc/self/stat": stat})); err == nil {
			t.Errorf("processor time is read from %q", stat)
		}
	}
	if _, err := newMeter(files(nil)); err == nil {
		t.Error("processor time is read without a file")
	}
	for _, status := range []map[string]string{
		nil,
		{"proc/meminfo": "MemTotal: 1 kB\n"},
		{"proc/self/status": "VmRSS: 1 kB\n"},
		{"proc/meminfo": "MemFree: 1 kB\n", "proc/self/status": "VmRSS: 1 kB\n"},
		{"proc/meminfo": "MemTotal: 1 kB\n", "proc/self/status": "VmRSS: much kB\n"},
	} {
		if _, err := (&meter{root: files(status)}).memory(0); err == nil {
			t.Errorf("memory is measured by %v", status)
		}
	}
}
