package cluster

import (
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/mem"
)

func TestMeterSeesABusyProcess(t *testing.T) {
	meter, err := newMeter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A tenth of one processor is all that this process may use, and it uses much
	// of one: nothing else decides the result, however busy the machine is.
	meter.root = files(map[string]string{
		"proc/self/cgroup":         "0::/\n",
		"sys/fs/cgroup/cpu.max":    "10000 100000\n",
		"sys/fs/cgroup/memory.max": "68719476736\n",
	})
	busy(t, meter, 50*time.Millisecond)
	cpu, memory, err := meter.measure(t.Context())
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
	begun := meter.spent
	for deadline := time.Now().Add(20 * time.Second); ; {
		for i, sum := 0, 0; i < 1e6; i++ {
			sum += i * sum
		}
		spent, _, err := meter.processorTime(t.Context())
		switch {
		case err != nil:
			t.Fatal(err)
		case spent-begun >= atLeast.Seconds():
			return
		case time.Now().After(deadline):
			t.Fatal("the process gets no processor time")
		}
	}
}

func TestMeterRespectsTheLimitOfMemory(t *testing.T) {
	meter, err := newMeter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := meter.process.MemoryInfoWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	machine, err := mem.VirtualMemory()
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[float64]float64{
		0:                           float64(own.RSS) / float64(machine.Total) * 100,
		float64(machine.Total) * 10: float64(own.RSS) / float64(machine.Total) * 100,
		float64(own.RSS) * 2:        50,
		1:                           100,
	} {
		got, err := meter.memory(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		if got < want*0.7 || got > want*1.4 { // it may grow meanwhile
			t.Errorf("with a limit of %v bytes the process uses %v %%, want about %v %%", limit, got, want)
		}
	}
}
