package roles

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/retention"
)

// DayKinds are the possible kinds of --days.
var DayKinds = []string{"roles", "nodes", "schedules", "metrics"}

// DaysRecord is the output of --days: rows of one kind.
type DaysRecord[R any] struct {
	Days []R `json:"days"`
}

// RoleDayRecord is one day of one role as printed.
type RoleDayRecord struct {
	Day           string  `json:"day"`
	Role          string  `json:"role"`
	Terms         int64   `json:"terms"`
	Unclean       int64   `json:"unclean"`
	Led           float64 `json:"led_seconds"`
	Vacant        float64 `json:"vacant_seconds"`
	LongestVacant float64 `json:"longest_vacant_seconds"`
}

type nodeDayRecord struct {
	Day    string `json:"day"`
	Joined int64  `json:"joined"`
	Left   int64  `json:"left"`
	Died   int64  `json:"died"`
}

type scheduleDayRecord struct {
	Day       string  `json:"day"`
	Schedule  string  `json:"schedule"`
	Succeeded int64   `json:"succeeded"`
	Failed    int64   `json:"failed"`
	Missed    int64   `json:"missed"`
	Ran       float64 `json:"ran_seconds"`
	Longest   float64 `json:"longest_seconds"`
}

type metricDayRecord struct {
	Day      string            `json:"day"`
	Metric   string            `json:"metric"`
	Labels   map[string]string `json:"labels"`
	Kind     string            `json:"kind"`
	Samples  int64             `json:"samples"`
	Total    float64           `json:"total"`
	Least    *float64          `json:"least"` // null for a counter
	Greatest *float64          `json:"greatest"`
}

// checkDays rejects flags in conflict with --days, or in need of it.
func (c *historyCommand) checkDays() error {
	switch {
	case c.days == "" && c.name != "":
		return console.Usage("--name is for --days: to see the terms of a role use --role")
	case c.days == "":
		return nil
	case !slices.Contains(DayKinds, c.days):
		return console.Usage("--days %q is unknown; there are %s", c.days, strings.Join(DayKinds, ", "))
	case c.nodes || c.node != "" || c.role.Given():
		return console.Usage("--days shows totals of whole days: omit --nodes, --node and --role; --name takes the name of a role, schedule or metric")
	case c.days == "nodes" && c.name != "":
		return console.Usage("--days nodes counts all nodes together: omit --name")
	}
	return nil
}

// printDays prints daily totals.
func (c *historyCommand) printDays(ctx context.Context, now time.Time) error {
	database, err := c.database.Work(ctx)
	if err != nil {
		return err
	}
	defer database.Close()
	query := retention.Query{Since: c.since.Before(now), Until: c.until.Before(now), Name: c.name, Limit: c.limit}
	if !query.Until.IsZero() {
		query.Until = query.Until.Add(24 * time.Hour) // the day of it counts
	}
	switch c.days {
	case "roles":
		days, err := retention.RoleDays(ctx, database.Backend, database.Pool, query)
		return printDays(c, err, days, "DAY ROLE TERMS UNCLEAN LED VACANT LONGEST", func(d retention.RoleDay) (RoleDayRecord, []string) {
			return RoleDayRecord{day(d.Day), d.Role, d.Terms, d.Unclean, d.Led.Seconds(), d.Vacancy.Seconds(), d.LongestVacancy.Seconds()},
				[]string{day(d.Day), d.Role, whole(d.Terms), whole(d.Unclean), brief(d.Led), brief(d.Vacancy), brief(d.LongestVacancy)}
		})
	case "nodes":
		days, err := retention.NodeDays(ctx, database.Backend, database.Pool, query)
		return printDays(c, err, days, "DAY JOINED LEFT DIED", func(d retention.NodeDay) (nodeDayRecord, []string) {
			return nodeDayRecord{day(d.Day), d.Joined, d.Left, d.Died}, []string{day(d.Day), whole(d.Joined), whole(d.Left), whole(d.Died)}
		})
	case "schedules":
		days, err := retention.ScheduleDays(ctx, database.Backend, database.Pool, query)
		return printDays(c, err, days, "DAY SCHEDULE SUCCEEDED FAILED MISSED RAN LONGEST", func(d retention.ScheduleDay) (scheduleDayRecord, []string) {
			return scheduleDayRecord{day(d.Day), d.Schedule, d.Succeeded, d.Failed, d.Missed, d.Ran.Seconds(), d.Longest.Seconds()},
				[]string{day(d.Day), d.Schedule, whole(d.Succeeded), whole(d.Failed), whole(d.Missed), brief(d.Ran), brief(d.Longest)}
		})
	default:
		days, err := retention.MetricDays(ctx, database.Backend, database.Pool, query)
		return printDays(c, err, days, "DAY METRIC LABELS KIND SAMPLES TOTAL MEAN LEAST GREATEST", metricDay)
	}
}

func metricDay(d retention.MetricDay) (metricDayRecord, []string) {
	labels, err := json.Marshal(d.Labels)
	if err != nil {
		panic(err) // texts only
	}
	r := metricDayRecord{Day: day(d.Day), Metric: d.Metric, Labels: d.Labels, Kind: d.Kind, Samples: d.Samples, Total: d.Total}
	row := []string{r.Day, d.Metric, string(labels), d.Kind, whole(d.Samples), decimal(d.Total), "-", "-", "-"}
	if d.Kind == "gauge" {
		r.Least, r.Greatest = &d.Least, &d.Greatest
		row = append(row[:6], decimal(d.Total/float64(max(1, d.Samples))), decimal(d.Least), decimal(d.Greatest))
	}
	return r, row
}

// printDays prints the rows, or returns the error of reading them.
func printDays[D, R any](c *historyCommand, err error, days []D, header string, row func(D) (R, []string)) error {
	if err != nil {
		return c.database.Explain(err)
	}
	record := DaysRecord[R]{Days: make([]R, len(days))}
	rows := [][]string{strings.Fields(header)}
	for i, d := range days {
		var cells []string
		record.Days[i], cells = row(d)
		rows = append(rows, cells)
	}
	return c.out.PrintTable(record, rows, "KIND", "SAMPLES", "LEAST", "TOTAL")
}

func day(at time.Time) string { return at.Format(time.DateOnly) }

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func brief(d time.Duration) string { return d.Round(time.Millisecond).String() }

func decimal(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }
