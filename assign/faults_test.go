package assign_test

import (
	"fmt"
	"github.com/exactly-one/tenure/internal/pgtest"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// rowsVariable is how many rows are worked off under faults; one fault for each
// rowsPerFault of them.
const (
	rowsVariable = "TENURE_TEST_ASSIGN_ROWS"
	rowsPerFault = 1000
)

// audit records assignments, replays, changes of the nodes' statuses, and which node
// finished which row.
const audit = `
CREATE TABLE {schema}.finished (job bigint PRIMARY KEY, assignment bigint NOT NULL, node uuid NOT NULL);
CREATE TABLE {schema}.given (
	job bigint, assignment bigint, node uuid NOT NULL, term bigint NOT NULL, term_began timestamptz NOT NULL,
	at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (job, assignment)
);
CREATE TABLE {schema}.statuses (node uuid NOT NULL, dead boolean NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE FUNCTION {schema}.note_given() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO {schema}.given (job, assignment, node, term, term_began)
	SELECT NEW.id, NEW.assignment, NEW.node_id, t.term, t.acquired_at FROM {terms} t WHERE t.role = 'assigner';
	RETURN NULL;
END $$;
CREATE TRIGGER note_given AFTER UPDATE ON {schema}.jobs
	FOR EACH ROW WHEN (NEW.state = 'assigned') EXECUTE FUNCTION {schema}.note_given();
CREATE TABLE {schema}.replayed (job bigint NOT NULL, attempts integer NOT NULL, term bigint NOT NULL);
CREATE FUNCTION {schema}.note_replayed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO {schema}.replayed (job, attempts, term)
	SELECT OLD.id, OLD.attempts, t.term FROM {terms} t WHERE t.role = 'scheduler';
	RETURN NULL;
END $$;
CREATE TRIGGER note_replayed AFTER UPDATE ON {schema}.jobs
	FOR EACH ROW WHEN (OLD.state = 'dead' AND NEW.state = 'pending') EXECUTE FUNCTION {schema}.note_replayed();
CREATE FUNCTION {schema}.note_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO {schema}.statuses (node, dead) VALUES (NEW.id, NEW.status = 'dead');
	RETURN NULL;
END $$;
CREATE TRIGGER note_status AFTER INSERT OR UPDATE OF status ON {nodes}
	FOR EACH ROW EXECUTE FUNCTION {schema}.note_status();`

// Rows are processed while leaders and workers are killed and paused: none is
// lost, and each is finished by the node that has it. A schedule replays those
// that fail too often, whichever node leads.
func TestNoRowIsLostUnderFaults(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	rows := 4 * rowsPerFault
	if text := os.Getenv(rowsVariable); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", rowsVariable, err)
		}
	}
	w := newJobs(t)
	w.raw(pgtest.SQL(w.Backend, audit))
	nodes := map[string]*exec.Cmd{}
	defer func() {
		for _, node := range nodes {
			kill(node)
		}
	}()
	for i := range 4 {
		name := fmt.Sprintf("node %d", i)
		nodes[name] = w.start(name)
	}
	leader := func(role string) string {
		var name string
		w.Await("a leader of "+role, func() bool {
			name = one[string](w, `
				SELECT coalesce(max(n.name), '')
				FROM {leaders} l JOIN {nodes} n ON n.id = l.node_id
				WHERE l.role = $1 AND l.lease_until > clock_timestamp()`, role)
			return name != ""
		})
		return name
	}
	finished := func() int { return one[int](w, `SELECT count(*) FROM {schema}.finished`) }
	for added, fault := 0, 0; added < rows; fault++ {
		leader("assigner")
		n := min(rowsPerFault, rows-added)
		w.add(n, "")
		added += n
		enough := finished() + rand.IntN(n/4+1)
		w.Await("work in the middle", func() bool { return finished() >= enough })
		role := []string{"assigner", "assigner", "scheduler", "scheduler"}[fault%4]
		if role == "scheduler" {
			w.Await("a replay", func() bool { return one[int](w, `SELECT count(*) FROM {schema}.replayed`) > 0 })
		}
		victim := leader(role)
		if fault%2 == 0 {
			kill(nodes[victim])
			nodes[victim] = w.start(victim)
			continue
		}
		if err := nodes[victim].Process.Signal(sandbox.PauseSignal); err != nil {
			t.Fatal(err)
		}
		// It wakes up when its rows were taken from it, and others begin them.
		w.Await("its rows taken", func() bool {
			return one[bool](w, `
				SELECT n.status = 'dead' AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.node_id = n.id)
				FROM {nodes} n WHERE n.name = $1 ORDER BY n.started_at DESC LIMIT 1`, victim)
		})
		if err := nodes[victim].Process.Signal(sandbox.ResumeSignal); err != nil {
			t.Fatal(err)
		}
	}
	w.Await("all done", func() bool { return finished() == rows && w.count(`state <> 'done'`) == 0 })
	replays := one[int](w, `SELECT count(DISTINCT term) FROM {schema}.replayed`)
	t.Logf("%d assignments of %d rows in %d terms, %d rows replayed in %d terms of the schedule",
		one[int](w, `SELECT count(*) FROM {schema}.given`), rows, one[int](w, `SELECT count(DISTINCT term) FROM {schema}.given`),
		one[int](w, `SELECT count(*) FROM {schema}.replayed`), replays)
	if replays < 2 {
		t.Error("no dead row was replayed after another node had taken the schedule over")
	}
	for what, count := range map[string]string{
		"rows finished by a node that did not have them": `
			SELECT count(*)
			FROM {schema}.finished f
			WHERE NOT EXISTS (SELECT FROM {schema}.given g WHERE (g.job, g.assignment, g.node) = (f.job, f.assignment, f.node))`,
		"rows finished under an assignment that was not their last": `
			SELECT count(*) FROM {schema}.finished f JOIN {schema}.jobs j ON j.id = f.job WHERE j.assignment <> f.assignment`,
		"rows given to nodes that were dead before the term": `
			SELECT count(*)
			FROM {schema}.given g
			CROSS JOIN LATERAL (
				SELECT s.dead FROM {schema}.statuses s
				WHERE s.node = g.node AND s.at < g.term_began - interval '100 ms'
				ORDER BY s.at DESC LIMIT 1
			) before
			WHERE before.dead AND NOT EXISTS (
				SELECT FROM {schema}.statuses s
				WHERE s.node = g.node AND NOT s.dead AND s.at BETWEEN g.term_began - interval '100 ms' AND g.at
			)`,
		"rows given up before their last attempt": `SELECT count(*) FROM {schema}.replayed WHERE attempts <> 3`,
		"rows given by a term after the next had begun": `
			SELECT count(*)
			FROM {schema}.given g
			WHERE EXISTS (SELECT FROM {schema}.given later WHERE later.term > g.term AND later.term_began < g.at)`,
	} {
		if n := one[int](w, count); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	if again := one[int](w, `SELECT count(*) FROM (SELECT FROM {schema}.given GROUP BY job HAVING count(DISTINCT node) > 1) moved`); again == 0 {
		t.Error("no row went from one node to another, so the faults proved nothing")
	}
}
