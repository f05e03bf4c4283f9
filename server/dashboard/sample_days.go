package dashboard

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
)

// readSampleDays reads the daily totals of metrics, of all labels but the status together.
const readSampleDays = `
SELECT
    (day::timestamp AT TIME ZONE 'UTC'),
    metric,
    coalesce(labels ->> 'status', ''),
    sum(samples)::bigint,
    sum(total)::double precision,
    coalesce(max(greatest), 0)::double precision
FROM {sample_days}
WHERE day >= (clock_timestamp() AT TIME ZONE 'UTC')::date - $1::int AND metric = ANY ($2)
GROUP BY 1, 2, 3
ORDER BY 1`

// dayTotal is the total of a metric on a day.
type dayTotal struct {
	Day      time.Time
	Metric   string
	Status   string
	Samples  int64
	Total    float64
	Greatest float64
}

// value is the one number of a day, if there is one.
func (t dayTotal) value(how reduction) (float64, bool) {
	switch how {
	case increase:
		return t.Total, true
	case greatest:
		return t.Greatest, t.Samples > 0
	default:
		return t.Total / float64(max(1, t.Samples)), t.Samples > 0
	}
}

// days fills a record with the daily totals in a range, one point a day at its beginning.
func (s *samples) days(ctx context.Context, within graphRange, record *graphsRecord) error {
	tables := schema.Tables{Schema: schema.Of(s.backend), Feature: features.Samples, Database: s.database}
	var names []string
	for _, g := range clusterGraphs {
		for _, l := range g.lines {
			if l.metric != "" {
				names = append(names, s.prefix+l.metric)
			}
		}
	}
	record.From = time.UnixMilli(record.From).UTC().Truncate(within.step).UnixMilli()
	rows, _ := tables.Query(ctx, readSampleDays, int(within.length/within.step), names) // rows reports the error
	totals, err := pgx.CollectRows(rows, pgx.RowToStructByPos[dayTotal])
	if err != nil {
		return err
	}
	if len(totals) == 0 {
		record.Problem = noDays
		return nil
	}
	newest := totals[len(totals)-1].Day.UnixMilli()
	record.Newest = &newest
	for _, g := range clusterGraphs {
		graph := graphRecord{Name: g.name, Unit: g.unit, Series: []seriesRecord{}}
		for _, l := range g.lines {
			if l.metric != "" {
				if l.how == increase {
					graph.Step = within.step.Milliseconds()
				}
				graph.Series = append(graph.Series, seriesRecord{l.name, dayLine(totals, s.prefix+l.metric, l, within.step)})
			}
		}
		if len(graph.Series) > 0 {
			record.Graphs = append(record.Graphs, graph)
		}
	}
	return nil
}

// dayLine returns the points of a metric. A missing day has no value.
func dayLine(totals []dayTotal, metric string, l line, step time.Duration) [][2]any {
	points := [][2]any{}
	var last time.Time
	for _, t := range totals {
		value, ok := t.value(l.how)
		if t.Metric != metric || t.Status != l.status || !ok {
			continue
		}
		if !last.IsZero() && t.Day.Sub(last) > step {
			points = append(points, [2]any{last.Add(step).UnixMilli(), nil})
		}
		points = append(points, point(t.Day, value))
		last = t.Day
	}
	return points
}
