//go:build linux

package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// 200 processes campaign for one role over two agents, with four connections, and
// each leader is killed in turn. In a short run there are 20.
func TestManyProcessesShareFourConnections(t *testing.T) {
	processes, rounds := 200, 40
	if testing.Short() {
		processes, rounds = 20, 4
	}
	s := newSite(t, 10*time.Second)
	paths := []string{socketPath(t), socketPath(t)}
	for i, name := range []string{"agent-0", "agent-1"} {
		s.agent(name, s.server.DSN(), paths[i])
		s.join(paths[i], names(name+"-node", processes/2)...)
	}
	s.leader(s.nodes...)
	if n := s.connections(t); n != 4 {
		t.Errorf("the nodes use %d connections, want 4", n)
	}
	took := s.killLeaders(rounds)
	t.Logf("%d processes on 4 connections, SIGKILL of a node to the next leader: p50 %v, p99 %v, max %v, of %d",
		processes, percentile(took, 50), percentile(took, 99), took[len(took)-1], len(took))
	if n := s.connections(t); n != 4 {
		t.Errorf("the nodes use %d connections after the failovers, want 4", n)
	}
}

// The leader and all other nodes of its host are killed, so that the next leader is
// on the other host; beside it, two plain nodes with their own connections.
func TestFailoverReachesOtherHost(t *testing.T) {
	pgtest.Long(t)
	const rounds = 30
	t.Run("agents", func(t *testing.T) {
		s := newSite(t, 10*time.Second)
		paths := []string{socketPath(t), socketPath(t)}
		nodes := map[string]string{} // the path of each node
		join := func(path, name string) {
			s.join(path, name)
			nodes[name] = path
		}
		for i, name := range []string{"agent-0", "agent-1"} {
			s.agent(name, s.server.DSN(), paths[i])
			join(paths[i], name+"-node")
		}
		s.report(rounds, "one node on each of two agents", func(killed *children.Child) { join(nodes[killed.Name], killed.Name+"'") })
	})
	t.Run("plain nodes", func(t *testing.T) {
		s := newSite(t, 10*time.Second)
		join := func(name string) {
			c := s.start(order{Name: name, DSN: s.server.DSN()})
			s.nodes = append(s.nodes, c)
			children.Await(s, c, "ready", time.Time{})
		}
		join("a")
		join("b")
		s.report(rounds, "two plain nodes", func(killed *children.Child) { join(killed.Name + "'") })
	})
}

// report kills leaders, replaces each, and logs how long it took.
func (s *site) report(rounds int, what string, replace func(killed *children.Child)) {
	s.Helper()
	var took []time.Duration
	for range rounds {
		leader := s.leader(s.nodes...)
		since := time.Now()
		leader.Kill()
		_, d := s.successor(leader, since)
		took = append(took, d)
		replace(leader)
		s.awaitWatches(2)
	}
	slices.Sort(took)
	s.Logf("%s, SIGKILL to the next leader: p50 %v, p99 %v, max %v, of %d", what, percentile(took, 50), percentile(took, 99), took[len(took)-1], rounds)
}

// awaitWatches waits until as many sessions wait for the end of another one.
func (s *site) awaitWatches(want int) {
	s.Helper()
	conn := s.server.Conn(s.T)
	testkit.AwaitNil(s, patience, func() error {
		var n int
		err := conn.QueryRow(s.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE application_name LIKE $1 || '% watch' AND wait_event = 'advisory'`, s.schema).Scan(&n)
		if err == nil && n < want {
			err = fmt.Errorf("%d sessions watch another one, want %d", n, want)
		}
		return err
	})
}

// killLeaders kills leaders and returns the sorted times to the next ones.
func (s *site) killLeaders(rounds int) (took []time.Duration) {
	s.Helper()
	for range rounds {
		leader := s.leader(s.nodes...)
		since := time.Now()
		leader.Kill()
		_, d := s.successor(leader, since)
		took = append(took, d)
	}
	slices.Sort(took)
	return took
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// connections counts the connections to the test's installation, which have its
// name.
func (s *site) connections(t *testing.T) (n int) {
	t.Helper()
	row := s.server.Conn(t).QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1 || ' %'", s.schema)
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
