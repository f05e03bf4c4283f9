//go:build linux

package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/view"
)

// figureInterval is how often the backlog of the view is compared with what it is.
const figureInterval = 250 * time.Millisecond

// compareFigures records how many events the view really has not applied, and how many a
// person is shown.
func (b *bed) compareFigures(ctx context.Context) {
	for pause(ctx, figureInterval) == nil {
		once, cancel := context.WithTimeout(ctx, requestLimit)
		var (
			behind int64
			leader string
		)
		from := record.Now()
		err := b.asAdmin(once, func(conn *pgx.Conn) error {
			return conn.QueryRow(once,
				"SELECT (SELECT count(*) FROM tenure_events) - (SELECT count(*) FROM chaos_applied), coalesce((SELECT node_name FROM tenure_leaders WHERE role = $1), '')",
				view.Role().Name()).Scan(&behind, &leader)
		})
		to := record.Now()
		lag, failed := b.processors.Lag(once, viewName)
		shown := record.Now()
		cancel()
		b.mu.Lock()
		if err == nil {
			b.history.Backlogs = append(b.history.Backlogs, record.Backlog{From: from, To: to, Behind: behind})
		}
		if failed == nil && len(lag) == 1 && lag[0].Led {
			b.history.Figures = append(b.history.Figures, record.Figure{
				From: to, To: shown, Behind: lag[0].Behind, Age: int64(lag[0].Age), More: lag[0].Truncated, Leader: leader,
			})
		}
		b.mu.Unlock()
	}
}
