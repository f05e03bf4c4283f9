package assign_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// BenchmarkAssign measures how many rows per second are assigned to nodes and, for
// comparison, a bare UPDATE that assigns as many to one node, without a fence.
func BenchmarkAssign(b *testing.B) {
	for _, nodes := range []int{1, 10} {
		b.Run(fmt.Sprint(nodes, " nodes"), func(b *testing.B) {
			w := newJobs(b)
			for i := range nodes {
				w.worker(fmt.Sprint("worker ", i), "a", "b")
			}
			leader := w.scheduler("leader")
			config := w.config()
			config.MaxPerNode = b.N
			w.Exec(`INSERT INTO {schema}.jobs (capability) SELECT (ARRAY['', 'a', 'b'])[1 + n % 3] FROM generate_series(1, $1) n`, b.N)
			w.Exec(`VACUUM ANALYZE {schema}.jobs`)
			b.ResetTimer()
			w.run(w.assigner(leader, config))
			w.Await("all assigned", func() bool { return w.count(`state = 'pending'`) == 0 })
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	b.Run("bare", func(b *testing.B) {
		w := newJobs(b)
		w.Exec(`INSERT INTO {schema}.jobs (capability) SELECT (ARRAY['', 'a', 'b'])[1 + n % 3] FROM generate_series(1, $1) n`, b.N)
		w.Exec(`VACUUM ANALYZE {schema}.jobs`)
		b.ResetTimer()
		for bareBatch(w, w.Pool) > 0 {
		}
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

func bareBatch(w *world, pool *pgxpool.Pool) int64 {
	tag, err := pool.Exec(w.Context(), pgtest.SQL(w.Backend, `
		UPDATE {schema}.jobs
		SET state = 'assigned', node_id = gen_random_uuid(), attempts = attempts + 1, assignment = assignment + 1
		WHERE id IN (
			SELECT id FROM {schema}.jobs WHERE state = 'pending' ORDER BY capability, priority DESC NULLS LAST, id LIMIT 1000 FOR UPDATE SKIP LOCKED
		)`))
	if err != nil {
		w.Fatal(err)
	}
	return tag.RowsAffected()
}
