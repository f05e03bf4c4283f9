package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
)

// outageFamilies are the metrics of outages of the database.
type outageFamilies struct {
	families families

	total, length, ended, roles family
}

func newOutageFamilies(config Config) outageFamilies {
	f := newFamilies(config, "cluster")
	c := outageFamilies{
		total:  f.counter("outages_total", "Outages in which no node reached the database, among those that ended since this process began to read them."),
		length: f.gauge("outage_seconds", "How long the last outage of the database lasted, from the last heartbeat to the first session, 0 if there is none."),
		ended:  f.gauge("outage_ended_timestamp_seconds", "When the last outage of the database ended, 0 if there is none."),
		roles:  f.gauge("outage_roles", "Roles that stood still in the last outage of the database."),
	}
	c.families = f
	return c
}

func (c *outageFamilies) collect(to chan<- prometheus.Metric, o outages) {
	c.total.send(to, float64(o.count))
	c.length.send(to, o.last.Ended.Sub(o.last.Began).Seconds())
	c.ended.send(to, seconds(o.last.Ended))
	c.roles.send(to, float64(len(o.last.Roles)))
}

// outages are the outages read by a process.
type outages struct {
	known bool // they could be read
	count int  // that ended since the first read
	last  history.Outage
	found time.Time // when the last one was read first
}

// outageOverlap is how long after its end an outage is read again: its roles are recorded
// one after another.
const outageOverlap = 5 * time.Minute

// since is from when on outages are read. A read of the last outage reads all terms since
// its begin. So without new ones, it is read only as long as it changes.
func (o outages) since(now time.Time) time.Time {
	if now.Sub(o.found) > outageOverlap {
		return o.last.Ended.Add(time.Microsecond)
	}
	return o.last.Ended.Add(-outageOverlap)
}

// readOutages reads the new outages since the reading of previous. Without the privilege
// to read the history, there are no metrics of outages.
func (c *Work) readOutages(ctx context.Context, previous outages) (outages, error) {
	query := history.Query{Limit: 1}
	if previous.known && !previous.last.Ended.IsZero() {
		query = history.Query{Since: previous.since(time.Now())}
	}
	read, err := c.backend.Outages(ctx, query)
	switch {
	case errors.Is(err, dberr.ErrPrivilege) || errors.Is(err, dberr.ErrSchema):
		return outages{}, nil
	case err != nil:
		return previous, err
	}
	return previous.with(read), nil
}

// with adds outages, the latest first.
func (o outages) with(read []history.Outage) outages {
	for _, one := range read {
		if o.known && one.Ended.After(o.last.Ended) {
			o.count++
		}
	}
	if len(read) > 0 && !read[0].Ended.Before(o.last.Ended) {
		switch {
		case !o.known:
			o.found = read[0].Ended // by a process that has ended
		case read[0].Ended.After(o.last.Ended):
			o.found = time.Now()
		}
		o.last = read[0]
	}
	o.known = true
	return o
}
