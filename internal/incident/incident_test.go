package incident

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// midnight is when the stories of these tests begin.
var midnight = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return midnight.Add(d) }

// story builds the records of a cluster.
type story struct {
	changes Changes
	number  int64
}

func (s *story) node(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

// led adds a term; ended is negative while it lasts.
func (s *story) led(role, node string, began, ended time.Duration, reason tenure.EndReason, by string) {
	s.number++
	t := history.Term{
		Role: role, Term: s.number, Node: s.node(node), NodeName: node, Began: at(began), Reason: reason, By: by,
		PrecedingVacancy: -1, PrecedingSilence: -1,
	}
	if ended >= 0 {
		t.Ended = at(ended)
	}
	s.changes.Terms = append(s.changes.Terms, t)
}

func (s *story) became(node, status, previous, by string, when time.Duration) {
	s.changes.Nodes = append(s.changes.Nodes, history.NodeChange{
		At: at(when), Node: s.node(node), NodeName: node, Status: status, Previous: previous, By: by,
	})
}

// moves adds roles whose terms on a node end, and continue on others in turn.
func (s *story) moves(roles int, from string, ended, began time.Duration, reason tenure.EndReason, to ...string) {
	for i := range roles {
		role := fmt.Sprintf("%s-%02d", from, i)
		s.led(role, from, 0, ended, reason, "")
		if len(to) > 0 {
			s.led(role, to[i%len(to)], began, -1, "", "")
		}
	}
}

const open = -time.Nanosecond

func TestGroupDescribesWhatHappened(t *testing.T) {
	t.Parallel()
	const when = 3*time.Hour + 12*time.Minute + 7*time.Second
	for name, c := range map[string]struct {
		tell func(*story)
		want []string // the latest first
	}{
		"nothing": {func(s *story) { s.led("billing", "api-1", 0, open, "", "") }, nil},
		"a crash": {func(s *story) {
			s.moves(30, "api-1", when, when+41*time.Millisecond, history.EndCrashed, "api-2", "api-3", "api-2", "api-2", "api-3")
			s.became("api-1", "dead", "active", "", when+time.Millisecond)
		}, []string{"crash: api-1 crashed at 2026-11-23T03:12:07Z. Its 30 roles moved to api-2 (18) and api-3 (12) within 41 ms."}},
		"a crash of a node without roles": {func(s *story) {
			s.became("api-1", "dead", "active", "", when)
		}, []string{"crash: api-1 crashed at 2026-11-23T03:12:07Z."}},
		"a crash that leaves a role": {func(s *story) {
			s.moves(1, "api-1", when, 0, history.EndCrashed)
		}, []string{"crash: api-1 crashed at 2026-11-23T03:12:07Z. Its role api-1-00 has no leader."}},
		"a freeze": {func(s *story) {
			s.moves(2, "api-1", when, when+17*time.Millisecond, history.EndLeaseExpired, "api-2")
			for i := range s.changes.Terms {
				if s.changes.Terms[i].NodeName == "api-2" {
					s.changes.Terms[i].PrecedingSilence = 9417 * time.Millisecond
					s.changes.Terms[i].PrecedingVacancy = 17 * time.Millisecond
				}
			}
		}, []string{"silence: api-1 fell silent at 2026-11-23T03:11:57Z. Its 2 roles moved to api-2 after 9.4 s without a sign of life; the lock was free for 17 ms."}},
		"a crash during an open transaction": {func(s *story) {
			s.moves(1, "api-1", when, when+30400*time.Millisecond, history.EndCrashed, "api-2")
			s.changes.Terms[1].PrecedingBlocker = "process 4711 of user app (psql)"
		}, []string{"crash: api-1 crashed at 2026-11-23T03:12:07Z. Its role api-1-00 moved to api-2 within 30.4 s. The next term waited for process 4711 of user app (psql)."}},
		"an outage": {func(s *story) {
			s.changes.Outages = []history.Outage{{Began: at(when), Ended: at(when + 38*time.Second), ServerChanged: true, Roles: []string{"api-1-00", "api-2-00"}}}
			for _, node := range []string{"api-1", "api-2"} {
				s.moves(1, node, when+time.Second, when+39*time.Second, history.EndServerChanged, "api-2")
				s.became(node, "active", "active", "", when+38*time.Second)
			}
		}, []string{"outage: No node reached the database from 2026-11-23T03:12:07Z to 2026-11-23T03:12:45Z (38.0 s); the server lost its locks. 2 roles stood still for up to 39.0 s."}},
		"an outage whose leaders had been silent before": {func(s *story) {
			s.changes.Outages = []history.Outage{{Began: at(when), Ended: at(when + 7*time.Second), ServerChanged: true, Roles: []string{"api-1-00", "api-2-00"}}}
			for i, node := range []string{"api-1", "api-2"} {
				s.moves(1, node, when+time.Second, when+12*time.Second, history.EndServerChanged, "api-2")
				s.changes.Terms[len(s.changes.Terms)-1].PrecedingSilence = time.Duration(15-i) * time.Second
			}
		}, []string{"outage: No node reached the database from 2026-11-23T03:12:07Z to 2026-11-23T03:12:14Z (7.0 s); the server lost its locks. 2 roles stood still for up to 15.0 s."}},
		"a drain": {func(s *story) {
			s.became("api-1", "draining", "active", "alice", when-time.Second)
			s.moves(3, "api-1", when, when+5*time.Millisecond, history.EndHandedOver, "api-2")
			s.became("api-1", "left", "draining", "", when+time.Second)
		}, []string{"drain: api-1 began to drain at 2026-11-23T03:12:06Z, requested by alice. Its 3 roles moved to api-2 within 5 ms."}},
		"a rebalance": {func(s *story) {
			s.moves(2, "api-1", when, when+time.Millisecond, history.EndHandedOver, "api-3")
			s.moves(2, "api-2", when+time.Second, when+time.Second+time.Millisecond, history.EndHandedOver, "api-3")
		}, []string{"rebalance: api-1 and api-2 handed over 4 roles at 2026-11-23T03:12:07Z to api-3."}},
		"a rolling deployment": {func(s *story) {
			for i, stop := range []time.Duration{when, when + 30*time.Second, when + 60*time.Second} {
				from := fmt.Sprintf("old-%d", i+1)
				s.became(fmt.Sprintf("new-%d", i+1), "active", "", "", stop-time.Second)
				s.moves(1, from, stop, stop+7*time.Millisecond, history.EndShutdown, fmt.Sprintf("new-%d", i+1))
				s.became(from, "left", "active", "", stop+time.Second)
			}
		}, []string{"deployment: 3 nodes were replaced from 2026-11-23T03:12:07Z to 2026-11-23T03:13:07Z: old-1, old-2 and old-3. Their 3 roles moved to new-1 (1), new-2 (1) and new-3 (1) within 7 ms."}},
		"young nodes that stop": {func(s *story) {
			for i, node := range []string{"a", "b"} {
				s.became(node, "active", "", "", when-time.Minute)
				s.moves(1, node, when+time.Duration(i)*time.Second, 0, history.EndShutdown)
				s.became(node, "left", "active", "", when+time.Duration(i)*time.Second)
			}
		}, []string{
			"shutdown: b stopped at 2026-11-23T03:12:08Z. Its role b-00 has no leader.",
			"shutdown: a stopped at 2026-11-23T03:12:07Z. Its role a-00 has no leader.",
		}},
		"young nodes that stop their elections alone": {func(s *story) {
			for _, node := range []string{"e", "f"} {
				s.became(node, "active", "", "", when-time.Minute)
				s.moves(1, node, when, 0, history.EndShutdown)
			}
		}, []string{
			"shutdown: e stopped at 2026-11-23T03:12:07Z. Its role e-00 has no leader.",
			"shutdown: f stopped at 2026-11-23T03:12:07Z. Its role f-00 has no leader.",
		}},
		"young nodes that stop after others have died": {func(s *story) {
			for _, node := range []string{"a", "b", "c", "d"} {
				s.became(node, "active", "", "", when-time.Minute)
			}
			for i, node := range []string{"c", "d"} {
				s.became(node, "dead", "active", "", when-time.Duration(40-i)*time.Second)
			}
			for i, node := range []string{"a", "b"} {
				s.moves(1, node, when+time.Duration(i)*time.Second, 0, history.EndShutdown)
				s.became(node, "left", "active", "", when+time.Duration(i)*time.Second)
			}
		}, []string{
			"shutdown: b stopped at 2026-11-23T03:12:08Z. Its role b-00 has no leader.",
			"shutdown: a stopped at 2026-11-23T03:12:07Z. Its role a-00 has no leader.",
			"crash: d crashed at 2026-11-23T03:11:28Z.",
			"crash: c crashed at 2026-11-23T03:11:27Z.",
		}},
		"a deployment whose first new node crashed": {func(s *story) {
			s.became("new-0", "active", "", "", when-time.Minute)
			s.became("new-0", "dead", "active", "", when-50*time.Second)
			for i, stop := range []time.Duration{when, when + 30*time.Second} {
				from := fmt.Sprintf("old-%d", i+1)
				s.became(fmt.Sprintf("new-%d", i+1), "active", "", "", stop-time.Second)
				s.became(from, "left", "active", "", stop)
			}
		}, []string{
			"deployment: 2 nodes were replaced from 2026-11-23T03:12:07Z to 2026-11-23T03:12:37Z: old-1 and old-2.",
			"crash: new-0 crashed at 2026-11-23T03:11:17Z.",
		}},
		"young nodes that stop while others join": {func(s *story) {
			for i, node := range []string{"a", "b"} {
				s.became(node, "active", "", "", when-time.Minute)
				s.became("new-"+node, "active", "", "", when-time.Minute+time.Second)
				s.became(node, "left", "active", "", when+time.Duration(i)*time.Second)
			}
		}, []string{"shutdown: b stopped at 2026-11-23T03:12:08Z.", "shutdown: a stopped at 2026-11-23T03:12:07Z."}},
		"nodes that stop after they joined beside others": {func(s *story) {
			s.became("b", "active", "", "", when-time.Minute)
			s.became("c", "active", "", "", when-30*time.Second)
			s.became("new", "active", "", "", when+time.Second)
			for i, node := range []string{"a", "b", "c"} {
				s.became(node, "left", "active", "", when+time.Duration(i)*90*time.Second)
			}
		}, []string{
			"shutdown: c stopped at 2026-11-23T03:15:07Z.", "shutdown: b stopped at 2026-11-23T03:13:37Z.", "shutdown: a stopped at 2026-11-23T03:12:07Z.",
		}},
		"a restart of young nodes": {func(s *story) {
			for i, node := range []string{"a", "b"} {
				s.became(node, "active", "", "", when-time.Minute)
				s.became(node, "left", "active", "", when+time.Duration(i)*time.Second)
				s.changes.Nodes = append(s.changes.Nodes, history.NodeChange{
					At: at(when + time.Duration(i)*time.Second + time.Millisecond), Node: s.node(node + " again"), NodeName: node, Status: "active",
				})
			}
		}, []string{"deployment: 2 nodes were replaced from 2026-11-23T03:12:07Z to 2026-11-23T03:12:08Z: a and b."}},
		"a death that no node observed": {func(s *story) {
			s.moves(1, "api-1", when, when, history.EndCrashed, "api-2")
			s.changes.Terms[0].Cause, s.changes.Terms[1].PrecedingSilence = history.CauseUnobserved, 7200*time.Millisecond
		}, []string{"crash: api-1 crashed before 2026-11-23T03:12:07Z; no node observed it. Its role api-1-00 moved to api-2 after at most 7.2 s."}},
		"a stop that drains first": {func(s *story) {
			s.became("api-1", "draining", "active", "", when-time.Second)
			s.moves(1, "api-1", when, when+5*time.Millisecond, history.EndShutdown, "api-2")
			s.became("api-1", "left", "draining", "", when+time.Second)
		}, []string{"shutdown: api-1 stopped at 2026-11-23T03:12:07Z. Its role api-1-00 moved to api-2 within 5 ms."}},
		"silence of a node without roles": {func(s *story) {
			s.became("api-1", "dead", "active", "", when)
			s.changes.Nodes[0].Silent = true
		}, []string{"silence: api-1 fell silent at 2026-11-23T03:12:07Z."}},
		"work that fails": {func(s *story) {
			s.led("billing", "api-1", 0, when, history.EndResigned, "")
			s.changes.Terms[0].Cause = "the command ended 6 times in a row, most recently with exit code 3"
		}, []string{"change: api-1 gave up billing at 2026-11-23T03:12:07Z: the command ended 6 times in a row, most recently with exit code 3. It has no leader."}},
		"a node that gives up roles without a request": {func(s *story) {
			s.moves(26, "api-1", when, when+115*time.Millisecond, history.EndResigned, "api-2", "api-3")
		}, []string{"change: api-1 gave up 26 roles at 2026-11-23T03:12:07Z. They moved to api-2 (13) and api-3 (13) within 115 ms."}},
		"a node that gives up roles, one of which stays vacant": {func(s *story) {
			s.moves(2, "api-1", when, when+time.Millisecond, history.EndResigned, "api-2")
			s.led("orphan", "api-1", 0, when+time.Millisecond, history.EndResigned, "")
		}, []string{"change: api-1 gave up 3 roles at 2026-11-23T03:12:07Z. Of them, 2 moved to api-2 within 1 ms, and 1 has no leader."}},
		"work that fails again": {func(s *story) {
			s.led("billing", "api-1", 0, when, history.EndResigned, "")
			s.led("billing", "api-1", when+5*time.Second, when+6*time.Second, history.EndResigned, "")
		}, []string{
			"change: api-1 gave up billing at 2026-11-23T03:12:13Z. It has no leader.",
			"change: api-1 gave up billing at 2026-11-23T03:12:07Z. It moved to api-1 within 5.0 s.",
		}},
		"work that fails for two reasons": {func(s *story) {
			s.moves(2, "api-1", when, 0, history.EndResigned)
			s.changes.Terms[0].Cause, s.changes.Terms[1].Cause = "exit code 3", "no space left"
		}, []string{
			"change: api-1 gave up api-1-00 at 2026-11-23T03:12:07Z: exit code 3. It has no leader.",
			"change: api-1 gave up api-1-01 at 2026-11-23T03:12:07Z: no space left. It has no leader.",
		}},
		"a stop after which the role was retired": {func(s *story) {
			s.moves(1, "api-1", when, 0, history.EndShutdown)
			s.changes.Terms[0].Retired = at(when + time.Hour)
		}, []string{"shutdown: api-1 stopped at 2026-11-23T03:12:07Z. Its role api-1-00 has been retired."}},
		"a crash after which some roles were retired": {func(s *story) {
			s.moves(5, "api-1", when, 0, history.EndCrashed)
			s.changes.Terms[0].Retired, s.changes.Terms[1].Retired = at(when+time.Hour), at(when+time.Hour)
		}, []string{"crash: api-1 crashed at 2026-11-23T03:12:07Z. Of its 5 roles, 3 have no leader, and 2 have been retired."}},
		"a crash after which some roles moved": {func(s *story) {
			s.moves(3, "api-1", when, 0, history.EndCrashed)
			s.led("api-1-00", "api-2", when+time.Millisecond, open, "", "")
			s.changes.Terms[1].Retired = at(when + time.Hour)
		}, []string{"crash: api-1 crashed at 2026-11-23T03:12:07Z. Of its 3 roles, 1 moved to api-2 within 1 ms, 1 has no leader, and 1 has been retired."}},
		"an outage after which the role was retired": {func(s *story) {
			s.changes.Outages = []history.Outage{{Began: at(when), Ended: at(when + 38*time.Second), Roles: []string{"api-1-00"}}}
			s.moves(1, "api-1", when+time.Second, 0, history.EndServerChanged)
			s.changes.Terms[0].Retired = at(when + time.Hour)
		}, []string{"outage: No node reached the database from 2026-11-23T03:12:07Z to 2026-11-23T03:12:45Z (38.0 s). 1 role stood still and has been retired."}},
		"work that is completed": {func(s *story) {
			s.led("nightly", "api-1", 0, when, history.EndCompleted, "")
		}, []string{"change: api-1 completed the work of nightly at 2026-11-23T03:12:07Z."}},
		"a step-down": {func(s *story) {
			s.led("billing", "api-1", 0, when, history.EndSteppedDown, "bob")
			s.led("billing", "api-2", when+2*time.Millisecond, open, "", "")
		}, []string{"change: api-1 stepped down from billing at 2026-11-23T03:12:07Z, requested by bob. It moved to api-2 within 2 ms."}},
		"two crashes": {func(s *story) {
			s.moves(1, "api-1", when, when+time.Millisecond, history.EndCrashed, "api-2")
			s.moves(1, "api-3", when+time.Hour, when+time.Hour+time.Millisecond, history.EndCrashed, "api-2")
		}, []string{
			"crash: api-3 crashed at 2026-11-23T04:12:07Z. Its role api-3-00 moved to api-2 within 1 ms.",
			"crash: api-1 crashed at 2026-11-23T03:12:07Z. Its role api-1-00 moved to api-2 within 1 ms.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &story{}
			c.tell(s)
			var got []string
			for _, i := range Group(s.changes) {
				got = append(got, fmt.Sprintf("%s: %s", i.Kind, i.Sentence(time.UTC)))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// An incident lasts while one of its roles has no leader.
func TestIncidentLastsUntilRolesAreLed(t *testing.T) {
	t.Parallel()
	s := &story{}
	s.moves(2, "api-1", time.Hour, time.Hour+time.Second, history.EndCrashed, "api-2")
	if i := Group(s.changes)[0]; !i.Ended.Equal(at(time.Hour + time.Second)) {
		t.Errorf("all roles are led: it ended at %v", i.Ended)
	}
	s.led("orphan", "api-1", 0, time.Hour, history.EndCrashed, "")
	if i := Group(s.changes)[0]; !i.Ended.IsZero() || len(i.Moves) != 3 {
		t.Errorf("a role has no leader: %d moves, ended at %v", len(i.Moves), i.Ended)
	}
}

// If no node observed a crash, the incident lasts from the last heartbeat, as long as the role
// was without a leader.
func TestUnobservedCrashLastsFromTheLastHeartbeat(t *testing.T) {
	t.Parallel()
	s := &story{}
	s.moves(1, "api-1", time.Hour, time.Hour+77*time.Millisecond, history.EndCrashed, "api-2")
	s.changes.Terms[0].Cause, s.changes.Terms[1].PrecedingVacancy, s.changes.Terms[1].PrecedingSilence = history.CauseUnobserved, -1, 178*time.Millisecond
	i := Group(s.changes)[0]
	if without := i.Moves[0].WithoutLeader(); i.Lasted() != without || without != 178*time.Millisecond {
		t.Errorf("it lasted %v, and the role was without a leader for %v; want 178ms of both", i.Lasted(), without)
	}
	if got := i.Sentence(time.UTC); !strings.Contains(got, "crashed before "+at(time.Hour).Format(time.RFC3339)) {
		t.Errorf("%q; want the time when the lock was found free", got)
	}
}

// The id of an incident stays while more changes become part of it, and differs from
// those of others.
func TestIDStaysWhileIncidentGrows(t *testing.T) {
	t.Parallel()
	s := &story{}
	s.moves(1, "api-1", time.Hour, 0, history.EndCrashed)
	first := Group(s.changes)[0].ID()
	s.moves(2, "api-1", time.Hour+time.Second, time.Hour+2*time.Second, history.EndCrashed, "api-2")
	if all := Group(s.changes); len(all) != 1 || all[0].ID() != first {
		t.Errorf("%d incidents, the first has id %s; want one with %s", len(all), all[0].ID(), first)
	}
	s.moves(1, "api-3", time.Hour, time.Hour+time.Second, history.EndCrashed, "api-2")
	if all := Group(s.changes); len(all) != 2 || all[0].ID() == all[1].ID() {
		t.Errorf("two crashes: %d incidents, ids %s and %s", len(all), all[0].ID(), all[1].ID())
	}
}

// A drain has its id before the node has released its roles.
func TestIDOfDrainIsKnownAtRequest(t *testing.T) {
	t.Parallel()
	s := &story{}
	s.became("api-1", "draining", "active", "anna", time.Hour)
	before := Group(s.changes)[0].ID()
	s.moves(2, "api-1", time.Hour+9*time.Second, time.Hour+10*time.Second, history.EndHandedOver, "api-2")
	if all := Group(s.changes); len(all) != 1 || all[0].ID() != before || all[0].By != "anna" {
		t.Errorf("%+v; want one incident %s by anna", all, before)
	}
}

func TestEvidenceNamesCause(t *testing.T) {
	t.Parallel()
	silent := func(s *story) {
		s.moves(1, "api-1", time.Hour, time.Hour+17*time.Millisecond, history.EndLeaseExpired, "api-2")
		s.changes.Terms[1].PrecedingSilence = 9417 * time.Millisecond
	}
	for name, c := range map[string]struct {
		tell func(*story)
		want string
	}{
		"a crash":   {func(s *story) { s.moves(1, "api-1", time.Hour, 0, history.EndCrashed) }, "The server saw the connection of api-1 close at 2026-11-23T01:00:00Z."},
		"a silence": {silent, "The last heartbeat of api-1 arrived at 2026-11-23T00:59:50Z. The lease of api-1 expired at 2026-11-23T01:00:00Z, after 9.4 s of silence."},
		"a request": {func(s *story) { s.led("billing", "api-1", 0, time.Hour, history.EndSteppedDown, "anna") }, "Requested by anna."},
	} {
		s := &story{}
		c.tell(s)
		if got := strings.Join(Group(s.changes)[0].Evidence(Plain(time.UTC)), " "); got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

// A style decides how times and names are shown, so that no name can pass for text.
func TestStyleShowsTimesAndNames(t *testing.T) {
	t.Parallel()
	s := &story{}
	s.led("billing", "api-1", 0, time.Hour, history.EndSteppedDown, "bob")
	s.led("billing", "api-2", time.Hour+2*time.Millisecond, open, "", "")
	style := Style{Time: func(time.Time) string { return "<time>" }, Name: func(name string) string { return "<" + name + ">" }}
	want := "<api-1> stepped down from <billing> at <time>, requested by <bob>. It moved to <api-2> within 2 ms."
	if got := Group(s.changes)[0].Describe(style); got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// many is the past of many nodes that crash, restart and drain in turn.
func many(moves int) Changes {
	s := &story{}
	for n := range moves {
		node, at := fmt.Sprintf("api-%d", n%100), time.Duration(n)*20*time.Second
		reason := []tenure.EndReason{history.EndCrashed, history.EndShutdown, history.EndHandedOver, history.EndSteppedDown, history.EndLeaseExpired}[n%5]
		s.led(fmt.Sprintf("role-%d", n%200), node, at, at+19*time.Second, reason, "")
		s.became(node, []string{"dead", "left", "active"}[n%3], "active", "", at+19*time.Second)
	}
	return s.changes
}

func BenchmarkGroupTwentyThousandMoves(b *testing.B) {
	changes := many(20_000)
	for b.Loop() {
		Group(changes)
	}
}
