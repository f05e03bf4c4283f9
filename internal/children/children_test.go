package children

import (
	"bufio"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

const childVariable = "TENURE_CHILDREN_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	var leads atomic.Bool
	go Watch(0, Leads(leads.Load))
	Send(Report{Kind: "ready"})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		leads.Store(lines.Text() == "lead")
	}
}

func start(t *testing.T, note func(Report) bool) *Child {
	t.Helper()
	c, err := Start(Options{Name: "one", Env: []string{childVariable + "=1"}, Note: note})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

func say(t *testing.T, c *Child, word string) {
	t.Helper()
	asked := time.Now()
	if err := c.Say(word); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Await(t.Context(), word, asked); err != nil {
		t.Fatal(err)
	}
}

func TestChildLeadsUntilItSaysOtherwiseOrIsKilled(t *testing.T) {
	c := start(t, nil)
	if _, err := c.Await(t.Context(), "ready", time.Time{}); err != nil {
		t.Fatal(err)
	}
	say(t, c, "lead")
	say(t, c, "follow")
	if c.Leading() {
		t.Error("the child leads, want that it does not after \"follow\"")
	}
	say(t, c, "lead")
	c.Kill()
	ended := time.Now()
	leads := c.Leads()
	if len(leads) != 2 || c.Leading() {
		t.Fatalf("it led at %v, leading %v; want two times, and not now", leads, c.Leading())
	}
	if last := leads[1]; last.Length() < 0 || last.To.After(ended) {
		t.Errorf("it led last at %v, want until the kill, before %v", last, ended)
	}
	if _, err := c.Await(t.Context(), "more", time.Time{}); err == nil {
		t.Error("a report of a child that has ended was found, want an error")
	}
}

func TestReportsThatNoteTakesAreNotKept(t *testing.T) {
	noted := make(chan string, 1)
	c := start(t, func(r Report) bool { noted <- r.Kind; return false })
	if kind := <-noted; kind != "ready" {
		t.Errorf("noted %q, want %q", kind, "ready")
	}
	c.Kill()
	if r, found := c.Find("ready", time.Time{}); found {
		t.Errorf("found %+v, want nothing", r)
	}
}

func TestOverlapsFindsEveryPair(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(from, to time.Duration) Interval { return Interval{start.Add(from), start.Add(to)} }
	got := Overlaps([]Interval{at(0, 10), at(20, 30)}, []Interval{at(10, 21), at(29, 40)})
	if len(got) != 2 || got[0] != at(20, 21) || got[1] != at(29, 30) {
		t.Errorf("got %v, want 20 to 21 and 29 to 30 ns", got)
	}
}

func TestGapIsTheLongestThatBeganInTheInterval(t *testing.T) {
	gap := func(from, to int64) Report { return Report{Kind: "gap", Last: from, At: to} }
	c := &Child{reports: []Report{gap(5, 95), gap(10, 12), gap(20, 50), {Kind: "lead", Last: 25, At: 90}, gap(40, 80)}}
	if got := c.Gap(Interval{time.Unix(0, 9), time.Unix(0, 40)}); got != 30 {
		t.Errorf("got %d ns, want the 30 ns from 20 to 50", got)
	}
}
