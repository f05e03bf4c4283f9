package script_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/script"
)

func plan(seed uint64) script.Plan {
	return script.Plan{
		Seed: seed, Duration: 10 * time.Minute, Lease: 4 * time.Second, Nodes: 5, Roles: 20,
		Kinds: script.Kinds, Relayed: func(node int) bool { return node > 3 },
	}
}

func TestSeedRepeatsItsScript(t *testing.T) {
	one, again, other := script.Generate(plan(1)), script.Generate(plan(1)), script.Generate(plan(2))
	if !slices.Equal(one, again) {
		t.Error("one seed gave two scripts")
	}
	if slices.Equal(one, other) {
		t.Error("two seeds gave one script")
	}
}

func TestScriptsCanBeReadAgain(t *testing.T) {
	for seed := range uint64(20) {
		want := script.Generate(plan(seed))
		got, err := script.Parse(strings.NewReader("# a comment\n\n" + script.Format(want)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", script.Format(got), script.Format(want))
		}
	}
}

func TestInvalidLinesAreRejected(t *testing.T) {
	for line, want := range map[string]string{
		"1s":              "is not TIME KIND",
		"soon kill":       "invalid duration",
		"1s explode":      `no kind of fault "explode"`,
		"1s kill":         "needs node=",
		"1s step-down":    "needs role=",
		"1s kill nodes=3": `unknown word "nodes=3"`,
	} {
		if _, err := script.Parse(strings.NewReader("\n" + line)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: %v; want line 2, and %q", line, err, want)
		}
	}
}

func TestGeneratedScriptsHaveEveryFault(t *testing.T) {
	kinds := map[string]int{}
	met := map[bool]int{} // faults of the server, by whether a node had one
	for seed := range uint64(50) {
		p := plan(seed)
		steps := script.Generate(p)
		for i, s := range steps {
			kinds[s.Kind]++
			k, _ := script.Find(s.Kind)
			if s.At+s.For > p.Duration || i > 0 && s.At < steps[i-1].At {
				t.Errorf("seed %d: %v is late or out of order", seed, s)
			}
			if k.Needs&script.Relay != 0 && s.Node <= 3 {
				t.Errorf("seed %d: %v has no relay", seed, s)
			}
			checkOverlaps(t, p, steps, i, k)
			if k.Alone {
				met[slices.ContainsFunc(steps[:i], func(other script.Step) bool { return other.Node > 0 && other.At+other.For > s.At })]++
			}
		}
	}
	if met[true] == 0 || met[false] == 0 {
		t.Errorf("%d faults of the server meet a node with a fault, %d do not", met[true], met[false])
	}
	for _, k := range script.Kinds {
		if kinds[k.Name] == 0 {
			t.Errorf("no script has %s", k.Name)
		}
	}
}

// checkOverlaps looks at the faults that last when a step begins.
func checkOverlaps(t *testing.T, p script.Plan, steps []script.Step, i int, k script.Kind) {
	t.Helper()
	nodes := map[int]bool{}
	for _, earlier := range steps[:i] {
		if earlier.At+earlier.For < steps[i].At {
			continue
		}
		if earlier.Node > 0 {
			nodes[earlier.Node] = true
		}
		if other, _ := script.Find(earlier.Kind); other.Alone && k.Alone {
			t.Errorf("%v begins while %v lasts", steps[i], earlier)
		}
	}
	if nodes[steps[i].Node] {
		t.Errorf("%v: the node has another fault", steps[i])
	}
	if len(nodes) >= p.Nodes-1 {
		t.Errorf("%v: %d other nodes have faults", steps[i], len(nodes))
	}
}

func TestCompactShortensGaps(t *testing.T) {
	steps := []script.Step{
		{At: 30 * time.Second, Kind: "server-stop", For: 5 * time.Second}, {At: 32 * time.Second, Kind: "migrate-down"},
		{At: 39 * time.Second, Kind: "migrate-down"}, {At: 100 * time.Second, Kind: "migrate-down"},
	}
	var got []time.Duration
	for _, s := range script.Compact(steps, 6*time.Second) {
		got = append(got, s.At/time.Second)
	}
	if want := []time.Duration{6, 8, 15, 21}; !slices.Equal(got, want) {
		t.Errorf("the steps begin at %d s; want %d", got, want)
	}
	if end := script.End(steps); end != 100*time.Second {
		t.Errorf("the script ends after %v", end)
	}
}
