package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/cmd/tenure/internal/live"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/console"
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func member(name string, status tenure.NodeStatus) tenure.Member {
	m := tenure.Member{NodeInfo: tenure.NodeInfo{ID: uuid.NewSHA1(uuid.Nil, []byte(name)), Name: name, Host: "host"}, StartedAt: start}
	m.Status, m.LastHeartbeat = status, start.Add(time.Minute)
	return m
}

// led is a role that a node leads, or that no node leads if it has no name.
func led(name, by string, term int64) role {
	r := role{last: history.Term{Role: name, Term: term, PrecedingVacancy: 12 * time.Millisecond}}
	if by == "" {
		r.last.Ended, r.last.Reason = start, history.EndCrashed
		return r
	}
	r.leader = &tenure.Leader{Role: name, Term: term, NodeName: by, AcquiredAt: start, ReadAt: start, ValidFor: 10 * time.Second}
	return r
}

func reading(after time.Duration, s snapshot) live.Reading[snapshot] {
	return live.Reading[snapshot]{Value: s, At: start.Add(after)}
}

// texts are the texts of changes.
func texts(events []event) (all []string) {
	for _, e := range events {
		all = append(all, e.text)
	}
	return all
}

// A failover, the loss of a leader and what becomes of nodes are changes; a new
// heartbeat is none.
func TestChangesOmitHeartbeats(t *testing.T) {
	t.Parallel()
	before := snapshot{
		roles:   []role{led("a", "one", 1), led("b", "one", 2), led("c", "one", 3)},
		members: []tenure.Member{member("one", tenure.StatusActive), member("two", tenure.StatusActive), member("three", tenure.StatusActive)},
	}
	after := snapshot{
		roles:   []role{led("a", "two", 9), led("b", "", 2), led("c", "one", 3)},
		members: []tenure.Member{member("one", tenure.StatusDead), member("two", tenure.StatusDraining), member("four", tenure.StatusJoining)},
	}
	want := []string{
		"two leads a, term 9, after one, vacant for 12 ms",
		"b has no leader: the term of one ended (crashed)",
		"node one is dead, was active", "node two is draining, was active", "node four is here: joining", "node three has left",
	}
	if got := texts(changes(before, after, start)); !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	if got := changes(after, after, start); len(got) > 0 {
		t.Errorf("without a change: %q", texts(got))
	}
}

// The first reading has changes too: what happened in the hour before, the oldest first.
func TestFirstReadingHasRecentChanges(t *testing.T) {
	t.Parallel()
	frozen, ancient, vacant := led("a", "one", 9), led("b", "one", 2), led("c", "", 3)
	vacant.last.NodeName = "two"
	frozen.leader.AcquiredAt, frozen.last.PrecedingSilence = start.Add(2*time.Minute), 10_300*time.Millisecond
	ancient.leader.AcquiredAt = start.Add(-2 * time.Hour)
	m := &model{}
	m.take(reading(3*time.Minute, snapshot{roles: []role{frozen, ancient, vacant}, members: []tenure.Member{member("two", tenure.StatusDead)}}))
	want := []string{
		"c has no leader: the term of two ended (crashed)", "node two is dead; this was its last heartbeat",
		"one leads a, term 9, vacant for 12 ms, silent for 10.3 s",
	}
	if got := texts(m.events); !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// Heartbeats renew a lease between two readings, so its rest is that of the last one. While the
// database does not answer, it passes.
func TestLeasePassesWithoutReadingsOnly(t *testing.T) {
	t.Parallel()
	m := &model{}
	m.take(reading(0, snapshot{roles: []role{led("a", "one", 1)}}))
	v := view{80, 24, false, start.Add(4 * time.Second)}
	lease := func() string { return strings.Join(v.roles(m, 2), "\n") }
	if got := lease(); !strings.HasSuffix(got, " 10s") {
		t.Errorf("4 s after a reading:\n%s", got)
	}
	m.reading.Err = errors.New("no route to host")
	if got := lease(); !strings.HasSuffix(got, " 6s") {
		t.Errorf("without an answer:\n%s", got)
	}
}

// An outage of the database is a change, also if it ended before the first reading, and
// only once.
func TestOutageIsShownOnce(t *testing.T) {
	t.Parallel()
	s := snapshot{outage: &history.Outage{Began: start.Add(-40 * time.Second), Ended: start.Add(-2 * time.Second), Roles: []string{"a", "b"}}}
	m := &model{}
	m.take(reading(0, s))
	m.take(reading(time.Second, s))
	if got := texts(m.events); len(got) != 1 || got[0] != "no node reached the database for 38 s; roles that stood still: 2" {
		t.Errorf("%q", got)
	}
	s.outage = &history.Outage{Began: start.Add(time.Second), Ended: start.Add(2 * time.Second)}
	m.take(reading(3*time.Second, s))
	if got := texts(m.events); len(got) != 2 {
		t.Errorf("after another outage: %q", got)
	}
}

// A change is requested only after a confirmation.
func TestChangeNeedsConfirmation(t *testing.T) {
	t.Parallel()
	m := &model{}
	m.take(reading(0, snapshot{
		roles: []role{led("a", "one", 1), led("b", "", 2)}, members: []tenure.Member{member("one", tenure.StatusActive), member("two", tenure.StatusDead)}, drains: true,
	}))
	press := func(keys ...key) (confirmed *confirmation) {
		t.Helper()
		for _, k := range keys {
			asked, quit := m.press(k)
			if quit {
				t.Fatal("it quits")
			}
			if asked != nil {
				confirmed = asked
			}
		}
		return confirmed
	}
	for name, keys := range map[string][]key{
		"s n": {'s', 'n'}, "s other": {'s', keyOther}, "vacant": {keyDown, 's', 'y', keyUp}, "not a node": {'d', 'y'}, "dead": {keyTab, keyDown, 'd', 'y', keyUp, keyTab},
	} {
		if asked := press(keys...); asked != nil {
			t.Errorf("%s: %+v", name, asked.request)
		}
	}
	if asked := press('s', 'y'); asked == nil || asked.request.Kind != tenure.RequestStepDown || asked.request.Role != "a" || asked.request.By == "" {
		t.Errorf("step down: %+v", asked)
	}
	if asked := press(keyTab, 'd', 'y'); asked == nil || asked.request.Kind != tenure.RequestDrain || asked.request.Node != member("one", "").ID || asked.request.Force {
		t.Errorf("drain: %+v", asked)
	}
	if asked := press('u', 'y'); asked == nil || asked.request.Kind != tenure.RequestUndrain {
		t.Errorf("undrain: %+v", asked)
	}
	for _, k := range []key{'q', keyInterrupt} {
		if _, quit := m.press(k); !quit {
			t.Errorf("%d does not quit", k)
		}
	}
}

// The selected role stays selected when others appear before it.
func TestSelectionFollowsRole(t *testing.T) {
	t.Parallel()
	m := &model{}
	m.take(reading(0, snapshot{roles: []role{led("b", "one", 1), led("c", "one", 2)}}))
	m.press(keyDown)
	m.take(reading(time.Second, snapshot{roles: []role{led("a", "one", 3), led("b", "one", 1), led("c", "one", 2)}}))
	if m.press('s'); m.asking == nil || m.asking.request.Role != "c" {
		t.Errorf("%+v; want a question about c", m.asking)
	}
}

// The screen fits its size, prints nothing that a terminal would obey, and has colors
// only if they are wanted.
func TestRenderFitsTheScreen(t *testing.T) {
	t.Parallel()
	m := &model{}
	s := snapshot{members: []tenure.Member{member("one", tenure.StatusActive), member("\x1b[31mevil", tenure.StatusDead)}}
	for _, name := range []string{"billing", "evil\x1b]0;title\a", strings.Repeat("long", 30), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"} {
		s.roles = append(s.roles, led(name, "one", 1_795_453_092_539))
	}
	s.roles = append(s.roles, led("vacant", "", 7))
	m.take(reading(0, s))
	m.selected[roleList] = "vacant"
	m.reading.Err = errors.New("no route\x1b[2J to host")
	m.events = changes(snapshot{}, s, start)
	for _, size := range [][2]int{{80, 24}, {80, 12}, {120, 60}, {80, 3}, {80, 1}} {
		for _, colors := range []bool{false, true} {
			v := view{size[0], size[1], colors, start.Add(3 * time.Second)}
			lines := v.render(m)
			if len(lines) > max(1, v.height) {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			text := strings.Join(lines, "\n")
			if !colors && strings.Contains(text, "\x1b") || colors && v.height > 3 && !strings.Contains(text, "\x1b[31m") {
				t.Errorf("%v, colors %v: %q", size, colors, text)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); !colors && n > v.width {
					t.Errorf("%v: %d characters in %q", size, n, line)
				}
			}
			if strings.ContainsAny(text, "\a") || strings.Contains(text, "\x1b]") || strings.Contains(text, "\x1b[2J") {
				t.Errorf("%v: a foreign sequence in %q", size, text)
			}
			if v.height >= 12 && (!strings.Contains(text, ">  vacant") || !strings.Contains(text, "CHANGES") || !strings.Contains(text, help)) {
				t.Errorf("%v: the selected role, the changes or the help are missing:\n%s", size, text)
			}
		}
	}
	if title := (view{width: 200, height: 24, now: start}).render(m)[0]; !strings.Contains(title, "ago): the database does not answer") || !strings.Contains(title, "roles 18, vacant 1  nodes 2, dead 1") {
		t.Errorf("title: %q", title)
	}
}

// Firing alerts and failing work are above the roles, and roles without a leader and dead
// nodes are above the others, on a small and on a large screen.
func TestWhatIsWrongComesFirst(t *testing.T) {
	t.Parallel()
	s := snapshot{faults: []roles.Fault{{Name: "lag (critical)", What: "alert fires"}}}
	for _, name := range []string{"nightly", "hourly", "daily", "weekly", "monthly", "yearly", "secondly"} {
		s.faults = append(s.faults, roles.Fault{Name: name + " (3 times in a row)", What: "schedule fails"})
	}
	s.roles = append(s.roles, led("vacant", "", 7))
	s.members = append(s.members, member("gone", tenure.StatusDead))
	for i := range 16 {
		s.roles = append(s.roles, led(fmt.Sprintf("role-%02d", i), "node-01", 1_795_453_092_539))
		s.members = append(s.members, member(fmt.Sprintf("node-%02d", i), tenure.StatusActive))
	}
	m := &model{}
	m.take(reading(0, s))
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		lines := view{width: size[0], height: size[1], now: start}.render(m)
		text := strings.Join(lines, "\n")
		t.Logf("%v:\n%s", size, text)
		last := -1
		for _, part := range []string{"NOT WELL", "lag (critical)", "nightly (3 times in a row)", "ROLE", "vacant, crashed", "role-00", "NODE", "gone", "node-00", "CHANGES"} {
			at := strings.Index(text, part)
			if at <= last {
				t.Errorf("%v: %q is not below the part before it:\n%s", size, part, text)
			}
			last = at
		}
		if hidden := strings.Contains(lines[1], "more)"); hidden != (size[1] == 24) {
			t.Errorf("%v: the header of what is wrong is %q", size, lines[1])
		}
		if len(lines) != size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
	}
}

func TestKeysAreParsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]key{
		"s":               {'s'},
		"\x1b[A\x1bOBj\t": {keyUp, keyDown, 'j', keyTab},
		"\x1b":            {keyOther},
		"\x1b[5~":         {keyOther},
		"sy\x03":          {'s', 'y', keyInterrupt},
		"é\xff":           {'é', '\uFFFD'},
		"":                nil,
	} {
		if got := parse(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v; want %v", text, got, want)
		}
	}
}

// Rows that do not fit are counted in the header, and no line is empty while rows are
// hidden. Roles at rest are not vacant.
func TestHiddenRowsAreCounted(t *testing.T) {
	t.Parallel()
	var s snapshot
	for _, name := range strings.Split("abcdefghijklmnop", "") {
		s.roles, s.members = append(s.roles, led(name, "one", 1)), append(s.members, member(name, tenure.StatusActive))
	}
	s.roles[0] = led("rest", "", 1)
	s.roles[0].last.Reason = history.EndCompleted
	m := &model{}
	m.take(reading(0, s))
	for _, height := range []int{12, 24, 30, 50} {
		lines := view{width: 80, height: height, now: start}.render(m)
		hidden := strings.Count(strings.Join(lines, "\n"), " more)")
		if empty := slices.Index(lines, ""); empty >= 0 && hidden > 0 || (hidden == 0) != (height == 50) || !strings.Contains(lines[0], "vacant 0") {
			t.Errorf("with %d lines, line %d is empty and %d lists hide rows:\n%s", height, empty, hidden, strings.Join(lines, "\n"))
		}
	}
}

// On 80 columns a change of the last hours is read to its end.
func TestChangesFitInto80Columns(t *testing.T) {
	t.Parallel()
	const text = "settlement has no leader: the term of worker-7d9c5b ended (resigned)"
	m := &model{events: []event{{start.Add(-13 * time.Hour), "an old one", false}, {start, text, true}}}
	lines := view{80, 24, false, start}.changes(m, 3)
	if old, want := lines[1], "  "+console.ShortTime(start.Add(-13*time.Hour))+"  an old one"; old != want {
		t.Errorf("%q, want %q", old, want)
	}
	if got, want := lines[2], "  "+start.Local().Format(time.TimeOnly)+"  "+text; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
