package alerts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/exactly-one/tenure/internal/program/alerting"
)

// alert is a pending or firing series of a rule.
type alert struct {
	Rule, Fingerprint   string
	State               State
	Severity            string
	Labels, Annotations map[string]string
	Value               float64
	ActiveAt            time.Time
	FiredAt             time.Time // zero while pending
	Notified            []string  // addresses notified of its beginning
	VacantSince         time.Time // of its role, when it fired; zero if unknown
	GroupKey, Incident  string    // the incident when it fired, if known
	AckedBy             string    // as of when it was read
	AckedUntil          time.Time
	SilencedBy          string // when it fired; not kept with the alert
}

// since is since when the fault has lasted.
func (a alert) since() time.Time {
	if !a.VacantSince.IsZero() && a.VacantSince.Before(a.ActiveAt) {
		return a.VacantSince
	}
	return a.ActiveAt
}

// alertKey names an alert.
type alertKey struct{ rule, fingerprint string }

func (a alert) key() alertKey { return alertKey{a.Rule, a.Fingerprint} }

// notification is a message to one address about one alert.
type notification struct {
	alert   alert
	address string
	endedAt time.Time // zero where it began

	silenced bool // not to be sent unless the silence ends first
}

// change is the effect of one round on the alerts.
type change struct {
	written []alert    // to be written: new, or in another state
	removed []alertKey // over
	notify  []notification
	unacked []alertKey // whose acknowledgment is over
}

func (c change) empty() bool {
	return len(c.written) == 0 && len(c.removed) == 0 && len(c.notify) == 0 && len(c.unacked) == 0
}

// found is a present series of a condition.
type found struct {
	labels   map[string]string
	value    float64
	annotate func() map[string]string // its annotations, which take time
}

// as is an alert with the annotations of the found series.
func (f found) as(a alert) alert {
	a.Annotations = map[string]string{}
	if f.annotate != nil {
		a.Annotations = f.annotate()
	}
	return a
}

// outcome is a rule and the result of its condition. If the evaluation failed, its alerts
// do not change.
type outcome struct {
	rule  Rule
	found []found
	err   error
}

// step computes the change of the alerts at a time; it changes nothing. If the results
// are complete, alerts without a found series and alerts of removed rules end. No alert
// begins to fire before the results are complete.
//
// A silenced alert fires without notifications. They follow when the silence ends first.
func step(now time.Time, present map[alertKey]alert, outcomes []outcome, complete bool, by attention) change {
	var c change
	kept := map[alertKey]bool{}
	failed := map[string]bool{}
	for _, o := range outcomes {
		if o.err != nil {
			failed[o.rule.Name] = true
			continue
		}
		for _, f := range o.found {
			kept[c.stepFound(now, present, o.rule, f, complete, by)] = true
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(present), compareKeys) {
		if kept[key] || failed[key.rule] || !complete {
			continue
		}
		c.removed = append(c.removed, key)
		if before := present[key]; before.State == Firing {
			ended := now
			if ended.Before(before.FiredAt) {
				ended = before.FiredAt // the clock went back; receivers refuse an end before the beginning
			}
			c.addNotifications(before, before.Notified, ended)
		}
	}
	return c
}

// stepFound adds the changes by one found series, and returns the key of its alert.
func (c *change) stepFound(now time.Time, present map[alertKey]alert, rule Rule, f found, complete bool, by attention) alertKey {
	next := alert{
		Rule: rule.Name, Fingerprint: fingerprint(f.labels), State: Pending, Severity: rule.Severity,
		Labels: f.labels, Value: f.value, ActiveAt: now,
	}
	before, known := present[next.key()]
	if known && before.ActiveAt.Before(now) { // the clock may have gone back
		next.ActiveAt = before.ActiveAt
	}
	switch {
	case known && before.State == Firing:
		c.notifyAgain(now, before, rule.Notify, by)
	case complete && now.Sub(next.ActiveAt) >= rule.For:
		next.State, next.FiredAt = Firing, now
		c.fire(f.as(next), rule.Notify, by)
	case !known || !next.ActiveAt.Equal(before.ActiveAt):
		c.written = append(c.written, f.as(next))
	}
	return next.key()
}

func (c *change) addNotifications(a alert, addresses []string, endedAt time.Time) {
	for _, address := range addresses {
		c.notify = append(c.notify, notification{alert: a, address: address, endedAt: endedAt})
	}
}

// fire writes a newly firing alert, and notifies unless it is silenced.
func (c *change) fire(a alert, addresses []string, by attention) {
	if silence := alerting.Silencing(by.silences, a.Rule, a.Labels); silence != nil {
		a.SilencedBy = silence.CreatedBy
		for _, address := range addresses {
			c.notify = append(c.notify, notification{alert: a, address: address, silenced: true})
		}
	} else {
		a.Notified = addresses
		c.addNotifications(a, addresses, time.Time{})
	}
	c.written = append(c.written, a)
}

// notifyAgain notifies of a still firing alert: its new receivers, and all receivers when
// an acknowledgment is over.
func (c *change) notifyAgain(now time.Time, a alert, addresses []string, by attention) {
	if alerting.Silencing(by.silences, a.Rule, a.Labels) != nil {
		return
	}
	if ack, ok := by.acks[a.key()]; ok && ack.isOver(now) {
		c.unacked = append(c.unacked, a.key())
		c.addNotifications(a, a.Notified, time.Time{})
	}
	c.notifyAdded(a, addresses)
}

// notifyAdded notifies the addresses added to a rule since its alert fires.
func (c *change) notifyAdded(a alert, addresses []string) {
	var others []string
	for _, address := range addresses {
		if !slices.Contains(a.Notified, address) {
			others = append(others, address)
		}
	}
	if len(others) > 0 {
		a.Notified = slices.Concat(a.Notified, others)
		c.written = append(c.written, a)
		c.addNotifications(a, others, time.Time{})
	}
}

// apply returns the alerts after a change.
func apply(present map[alertKey]alert, c change) map[alertKey]alert {
	next := maps.Clone(present)
	for _, key := range c.removed {
		delete(next, key)
	}
	for _, a := range c.written {
		next[a.key()] = a
	}
	return next
}

// fingerprint is a digest of labels.
func fingerprint(labels map[string]string) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(hash, "%q=%q,", name, labels[name])
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

func compareKeys(a, b alertKey) int {
	return slices.Compare([]string{a.rule, a.fingerprint}, []string{b.rule, b.fingerprint})
}
