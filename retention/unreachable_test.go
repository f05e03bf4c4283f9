package retention_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/retention"
)

// A leader whose pool cannot reach the database, although its session can, gives the role
// up: another node removes the old rows.
func TestLeaderWhosePoolIsCutOffGivesUp(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	i := postgrestest.New(t, "schedules", "changes", "processors", "rollups")
	pool, network := i.PoolThroughNetwork()
	config := retention.Config{Role: tenure.NamedRole("compactor"), Interval: 20 * time.Millisecond, Pause: time.Millisecond}
	s := world{i, i.Node("sick", tenure.Config{})}
	sick, err := retention.New(s.node, pool, config)
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, sick.Run)
	s.Await("a search", func() bool { return !s.stateOf("terms").SweptAt.IsZero() })
	healthy, err := retention.New(i.Node("healthy", tenure.Config{}), i.Pool, config)
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, healthy.Run)
	if err := network.Close(); err != nil {
		t.Fatal(err)
	}
	const cause = `SELECT count(*) FROM {history} WHERE end_cause LIKE '%work of the role cannot reach the database%'`
	s.Await("that the role is given up", func() bool { return s.count(cause) == 1 })
	given := time.Now()
	s.Await("a search of the healthy node", func() bool { return s.stateOf("terms").SweptAt.After(given) })
}
