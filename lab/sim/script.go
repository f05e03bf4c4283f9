package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
)

// Script drives a world by commands, one line each, and reports what happened
// because of each. Nothing is left to chance. It must be used inside a synctest
// bubble.
type Script struct {
	world        *World
	member       Member
	seen         int // entries of the transcript already reported
	transactions map[*Machine]*transaction
	replica      snapshot // what the replica has received
	defects      Defects
}

// command is one command of a script. Its arguments are words.
type command struct {
	usage string
	run   func(*Script, []string) error
}

var commands = map[string]command{}

func init() {
	for _, c := range slices.Concat(clusterCommands, faultCommands) {
		commands[strings.Fields(c.usage)[0]] = c
	}
}

// settling is the time after each command in which all processes react to it. It is
// odd, so that no later command coincides with an event.
const settling = 137 * time.Microsecond

// Do performs one command and returns what happened since the last one.
func (s *Script) Do(line string) (string, error) {
	words := strings.Fields(line)
	c, known := commands[words[0]]
	if !known {
		return "", fmt.Errorf("unknown command %q", words[0])
	}
	if s.world == nil && words[0] != "cluster" {
		return "", fmt.Errorf("the first command must be cluster")
	}
	if words[0] == "status" {
		defer time.Sleep(settling) // a node may notice something when it is asked
		return s.status(), nil
	}
	if err := c.run(s, words[1:]); err != nil {
		return "", fmt.Errorf("%w; usage: %s", err, c.usage)
	}
	time.Sleep(settling)
	return s.report(), nil
}

// Close ends the script's world and returns the first violation, or nil.
func (s *Script) Close() *Violation {
	if s.world == nil {
		return nil
	}
	for _, m := range s.world.machines {
		if m.process != nil {
			s.world.mu.Lock()
			m.process.resume()
			s.world.mu.Unlock()
		}
	}
	s.world.Close()
	return s.world.Failure()
}

// report returns the entries of the transcript since the last report, without those
// that only matter to a programmer.
func (s *Script) report() string {
	t := s.world.Transcript
	t.mu.Lock()
	defer t.mu.Unlock()
	entries := slices.Clone(t.entries[s.seen:])
	s.seen = len(t.entries)
	type event struct {
		at          time.Duration
		actor, text string
	}
	var events []event
	for _, e := range entries {
		text := fmt.Sprintf(e.format, e.args...)
		if engine, ok := strings.CutPrefix(text, "| "); ok {
			if text, ok = strings.CutPrefix(engine, "state_change role="); !ok {
				continue
			}
			text, _, _ = strings.Cut(text, " attempt=")
			text, _, _ = strings.Cut(text, " error=")
			if strings.Contains(text, "acquiring") && !strings.Contains(text, "to=leader") {
				continue
			}
		}
		events = append(events, event{e.at, e.actor, text})
	}
	// Goroutines that run at the same instant do so in any order.
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.actor, b.actor), cmp.Compare(a.text, b.text))
	})
	var lines strings.Builder
	for _, e := range events {
		fmt.Fprintf(&lines, "%9.3f  %-6s  %s\n", e.at.Seconds(), e.actor, e.text)
	}
	return lines.String()
}

// status describes the terms that each node trusts and those that the server recorded.
func (s *Script) status() string {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines strings.Builder
	for _, role := range w.roleNames {
		row := w.server.roles[role]
		switch {
		case row == nil || row.term == 0:
			fmt.Fprintf(&lines, "%s: no term yet\n", role)
		case row.ended:
			fmt.Fprintf(&lines, "%s: term %d of %s ended, %s\n", role, row.term, row.holder.client.process, row.reason)
		default:
			fmt.Fprintf(&lines, "%s: term %d of %s\n", role, row.term, row.holder.client.process)
		}
		for _, m := range w.machines {
			p := m.process
			if p == nil || p.crashed || p.elections[role] == nil {
				fmt.Fprintf(&lines, "  %-4s down\n", m)
				continue
			}
			trust := ""
			if term := p.trusts(role); term > 0 {
				trust = fmt.Sprintf(", trusts term %d", term)
			}
			fmt.Fprintf(&lines, "  %-4s %s%s\n", p, p.elections[role].State(), trust)
		}
	}
	return lines.String()
}

// machine finds a machine by name.
func (s *Script) machine(words []string, place int) (*Machine, error) {
	if place >= len(words) {
		return nil, fmt.Errorf("a node is missing")
	}
	for _, m := range s.world.machines {
		if m.name == words[place] {
			return m, nil
		}
	}
	return nil, fmt.Errorf("no node %q", words[place])
}

// on runs f under World.mu with the machine that the first word names.
func on(f func(*Script, *Machine)) func(*Script, []string) error {
	return func(s *Script, words []string) error {
		m, err := s.machine(words, 0)
		if err != nil {
			return err
		}
		if m.process == nil {
			return fmt.Errorf("%s has not been started", m)
		}
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		f(s, m)
		return nil
	}
}

var clusterCommands = []command{
	{"cluster nodes=N roles=NAME,... [lease=D] [check=D] [settle=D] [stop=D] [fence=D] [grace=D] [stubborn=D] [polite=BOOL]", (*Script).cluster},
	{"start NODE...", (*Script).start},
	{"advance DURATION", func(_ *Script, words []string) error {
		d, err := time.ParseDuration(strings.Join(words, ""))
		time.Sleep(d)
		return err
	}},
	{"status", nil},
	{"step-down NODE ROLE", func(s *Script, words []string) error {
		m, err := s.machine(words, 0)
		if err != nil || len(words) != 2 {
			return cmp.Or(err, fmt.Errorf("a role is missing"))
		}
		m.process.stepDown(tenure.Request{Kind: tenure.RequestStepDown, Role: words[1]}, time.Hour)
		return nil
	}},
	{"hand-over NODE ROLE NODE", func(s *Script, words []string) error {
		from, err := s.machine(words, 0)
		if err != nil {
			return err
		}
		to, err := s.machine(words, 2)
		if err != nil {
			return err
		}
		from.process.stepDown(tenure.Request{Kind: tenure.RequestHandOver, Role: words[1], Target: to.process.id}, time.Hour)
		return nil
	}},
	{"request NODE ROLE", func(s *Script, words []string) error {
		m, err := s.machine(words, 0)
		if err != nil || len(words) != 2 {
			return cmp.Or(err, fmt.Errorf("a role is missing"))
		}
		m.process.request(tenure.Request{Kind: tenure.RequestStepDown, Role: words[1], By: m.name})
		return nil
	}},
	{"leave NODE", on(func(_ *Script, m *Machine) { m.process.end() })},
	{"begin NODE ROLE", (*Script).begin},
	{"fence NODE", func(s *Script, words []string) error {
		return s.transact(words, "fence", func(t *transaction) func() error { return t.fence })
	}},
	{"commit NODE", func(s *Script, words []string) error {
		return s.transact(words, "commit", func(t *transaction) func() error { return t.commit })
	}},
}

// cluster makes the world.
func (s *Script) cluster(words []string) error {
	nodes := 1
	roles := []string{"alpha"}
	lease := 10 * time.Second
	s.member = Member{Config: tenure.Config{CheckInterval: 5 * time.Second}}
	durations := map[string]*time.Duration{
		"lease": &lease, "check": &s.member.Config.CheckInterval, "settle": &s.member.Config.Settle,
		"stop": &s.member.Config.StopTimeout, "fence": &s.member.Config.FenceTimeout,
		"grace": &s.member.Election.ReconnectGrace, "stubborn": &s.member.Work.Stubborn,
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch {
		case name == "nodes":
			nodes, err = strconv.Atoi(value)
		case name == "roles":
			roles = strings.Split(value, ",")
		case name == "polite":
			s.member.Work.Polite, err = strconv.ParseBool(value)
		case durations[name] != nil:
			*durations[name], err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown setting %q", name)
		}
		if err != nil {
			return err
		}
	}
	s.member.Config.Lease = lease
	s.world = NewWorld(1, Network{Least: time.Millisecond, Most: time.Millisecond, Steady: true}, roles...)
	s.world.server.defects, s.world.replay.off = s.defects, s.defects != Defects{}
	s.world.Transcript.keep = 1 << 30
	s.world.checker.contextsOnly = true // a script's own calls of IsLeader appear in its transcript
	s.transactions = map[*Machine]*transaction{}
	for range nodes {
		s.world.NewMachine()
	}
	return nil
}

// start starts nodes, each a little after the one before.
func (s *Script) start(words []string) error {
	for i := range words {
		m, err := s.machine(words, i)
		if err != nil {
			return err
		}
		m.Start(s.member)
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// begin begins a transaction under the current term of a node.
func (s *Script) begin(words []string) error {
	m, err := s.machine(words, 0)
	if err != nil || len(words) != 2 {
		return cmp.Or(err, fmt.Errorf("a role is missing"))
	}
	s.world.mu.Lock()
	term := m.process.trusts(words[1])
	s.world.mu.Unlock()
	if term == 0 {
		return fmt.Errorf("%s does not lead %s", m, words[1])
	}
	s.transactions[m] = m.process.begin(m.process.rnd.fork(), words[1], term)
	return nil
}

// transact sends one statement of a node's transaction; the result arrives later.
func (s *Script) transact(words []string, name string, effect func(*transaction) func() error) error {
	m, err := s.machine(words, 0)
	if err != nil {
		return err
	}
	t := s.transactions[m]
	if t == nil {
		return fmt.Errorf("%s has no transaction", m)
	}
	s.world.group.Go(func() {
		err := t.ask(context.Background(), effect(t))
		t.process.log("%s of its transaction under term %d of %s: %v", name, t.term, t.role, err)
		if name == "commit" || err != nil {
			t.close()
		}
	})
	return nil
}
