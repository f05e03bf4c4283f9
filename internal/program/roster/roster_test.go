package roster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// node is a member of a registry, alive for a minute.
func node(id, name string, status tenure.NodeStatus) tenure.Member {
	heard := time.Unix(1_000_000, 0)
	return tenure.Member{
		NodeInfo: tenure.NodeInfo{ID: uuid.MustParse(id), Name: name}, Description: tenure.Description{Status: status},
		StartedAt: heard.Add(-time.Minute), LastHeartbeat: heard, SilentFor: time.Second, Lease: 10 * time.Second,
	}
}

const (
	idA = "aaaa0000-0000-0000-0000-000000000001"
	idB = "aaaa0000-0000-0000-0000-000000000002"
	idC = "cccc0000-0000-0000-0000-000000000003"
	idD = "dddd0000-0000-0000-0000-000000000004"
)

func example() *Roster {
	silent := node(idD, "silent", tenure.StatusActive)
	silent.SilentFor = 11 * time.Second
	return New([]tenure.Member{
		node(idA, "api", tenure.StatusDead), node(idB, "api", tenure.StatusActive), node(idC, "cccc", tenure.StatusDraining), silent,
	}, []tenure.Leader{{Role: "a", NodeID: uuid.MustParse(idB)}, {Role: "b", NodeID: uuid.MustParse(idB)}}, nil)
}

// TestFindPrefersFittingNodes: by id, name and the beginning of an id; the fitting before the others.
func TestFindPrefersFittingNodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		fits func(tenure.Member) bool
		want string // an id, or part of the error
	}{
		{idA, Alive, idA},
		{strings.ToUpper(idA), Alive, idA},
		{"api", Alive, idB},
		{"api", Dead, idA},
		{"cccc", Dead, idC}, // the only one, whether it fits or not
		{"aaaa", Alive, idB},
		{"AAAA0000", Dead, idA},
		{"dddd", Dead, idD},
		{"api", func(tenure.Member) bool { return true }, `2 nodes are called "api"`},
		{"api", func(tenure.Member) bool { return false }, `2 nodes are called "api"`},
		{"aaa", Alive, "no such node"}, // too short for an id
		{"apu", Alive, `did you mean "api"?`},
		{idC[:35] + "4", Alive, `did you mean "` + idC + `"?`},
		{"zzzzzzzz", Alive, "the living nodes are api, cccc"},
	} {
		m, err := example().Find(test.text, test.fits)
		_, noID := uuid.Parse(test.want)
		switch {
		case noID == nil && (err != nil || m.ID.String() != test.want):
			t.Errorf("%q is %s (%v), want %s", test.text, m.ID, err, test.want)
		case noID != nil && (err == nil || !strings.Contains(err.Error(), test.want) || m.ID != uuid.Nil):
			t.Errorf("%q is %s (%v), want %s", test.text, m.ID, err, test.want)
		}
		var ambiguous *AmbiguousError
		if err != nil && !errors.Is(err, tenure.ErrUnknownNode) && !errors.As(err, &ambiguous) {
			t.Errorf("%q: %T", test.text, err)
		}
	}
	if _, err := New(nil, nil, nil).Find("api", Alive); err == nil || !strings.Contains(err.Error(), "registry is empty") {
		t.Errorf("in an empty registry: %v", err)
	}
}

// TestSilentNodeCountsAsDead: a node that was silent for longer than its lease is dead.
func TestSilentNodeCountsAsDead(t *testing.T) {
	t.Parallel()
	seen := example().Record("shop")
	if c := seen.Counts; c.Active != 1 || c.Draining != 1 || c.Dead != 2 || c.Joining != 0 || c.Total != 4 {
		t.Errorf("%+v", c)
	}
	if leads := seen.Nodes[2].Leads; len(leads) != 2 || leads[1] != "b" {
		t.Errorf("leads %v", leads)
	}
	if alive, dead := seen.Nodes[2].UptimeSeconds, seen.Nodes[1].UptimeSeconds; alive != 61 || dead != 60 {
		t.Errorf("uptimes %v, %v", alive, dead)
	}
}

// TestShortIDsAreDistinct: as much as distinguishes them, and never less than a person can see.
func TestShortIDsAreDistinct(t *testing.T) {
	t.Parallel()
	if got := example().ShortIDs()(uuid.MustParse(idB)); got != idB {
		t.Errorf("%q", got)
	}
	few := New([]tenure.Member{node(idA, "a", tenure.StatusActive), node(idC, "c", tenure.StatusActive)}, nil, nil)
	if got := few.ShortIDs()(uuid.MustParse(idC)); got != "cccc0000" {
		t.Errorf("%q", got)
	}
}

// source is a registry that can fail and report changes.
type source struct {
	fail  atomic.Pointer[error] // what its methods return
	wake  func()
	ready chan struct{}
}

func (s *source) failWith(err error) { s.fail.Store(&err) }

func (s *source) failure() error {
	if fail := s.fail.Load(); fail != nil {
		return *fail
	}
	return nil
}

func (s *source) Members(context.Context) ([]tenure.Member, error) { return nil, s.failure() }

func (s *source) Leaders(context.Context, ...string) ([]tenure.Leader, error) {
	return nil, s.failure()
}

func (s *source) Listen(ctx context.Context, wake func()) error {
	s.wake = wake
	close(s.ready)
	<-ctx.Done()
	return nil
}

// TestFollowSurvivesFailures: Follow reads at first, at notifications and at every interval,
// survives failures, and ends with the context.
func TestFollowSurvivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &source{ready: make(chan struct{})}
		var read []time.Duration
		begun, ended := time.Now(), make(chan error, 1)
		go func() {
			ended <- Follow(ctx, s, time.Minute, slog.New(slog.DiscardHandler), func(*Roster) (bool, error) {
				read = append(read, time.Since(begun).Round(10*time.Millisecond))
				return true, nil
			})
		}()
		<-s.ready
		time.Sleep(10 * time.Second)
		s.wake()
		s.wake() // in the same moment: one reading more at most
		synctest.Wait()
		s.failWith(errors.New("down"))
		time.Sleep(time.Minute + time.Second)
		s.failWith(nil)
		time.Sleep(time.Minute + time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(read) < 3 || read[0] != 0 || read[1] != 10*time.Second || read[len(read)-1] < 120*time.Second {
			t.Errorf("read at %v", read)
		}
	})
}

// TestFollowEndsWithFirstFailure: it also ends when its function says so.
func TestFollowEndsWithFirstFailure(t *testing.T) {
	t.Parallel()
	down, enough := errors.New("down"), errors.New("enough")
	follow := func(fail error, more bool, err error) error {
		s := &source{ready: make(chan struct{})}
		s.failWith(fail)
		return Follow(t.Context(), s, time.Minute, slog.New(slog.DiscardHandler), func(*Roster) (bool, error) { return more, err })
	}
	if err := follow(down, true, nil); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	if err := follow(nil, false, nil); err != nil {
		t.Errorf("%v", err)
	}
	if err := follow(nil, true, enough); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}
