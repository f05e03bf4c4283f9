package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/program/notifier"
)

// checkRelations checks the settings of a file against each other. It compares only
// settings in the file: a missing one may come from a flag.
func (r *reader) checkRelations() {
	r.checkTogether()
	r.checkTiming()
	r.checkAlerts()
	r.checkUsers()
	r.checkSignOn()
	r.checkLinks()
	for i := range r.file.elements["cron"] {
		r.required(fmt.Sprintf("cron[%d]", i), "name", "schedule", "command")
	}
	r.checkSchedules()
	r.unique("cron")
}

// checkTogether checks keys that exclude or need each other.
func (r *reader) checkTogether() {
	if local := r.file.lookup("database.local"); local.value == true && r.file.set("database.dsn") {
		r.fault(local.at, "database.local and database.dsn exclude each other: leave one out")
	}
	for _, pair := range [][2]string{
		{"http.tls_cert", "http.tls_key"}, {"http.tls_key", "http.tls_cert"},
		{"dashboard.user_header", "dashboard.trusted_proxies"},
	} {
		if has := r.file.lookup(pair[0]); has.key != nil && !r.file.set(pair[1]) {
			r.fault(has.at, "%s needs %s", pair[0], pair[1])
		}
	}
}

const election = "cluster.leader_election."

// checkTiming checks durations against each other, as the engine does.
func (r *reader) checkTiming() {
	if lease := r.file.lookup(election + "lease_duration"); lease.key != nil {
		if contradiction := r.file.leaseTooShort(); contradiction != "" {
			r.fault(lease.at, "%s", contradiction)
		}
	}
	for _, pair := range [][2]string{
		{election + "retry_base", election + "retry_max"},
		{"cluster.membership.heartbeat_interval", "cluster.membership.dead_threshold"},
		{"shutdown.drain_timeout", "shutdown.force_after"},
	} {
		short, long := r.file.length(pair[0]), r.file.length(pair[1])
		if long > 0 && short > long {
			r.fault(r.file.lookup(pair[0]).at, "%s (%s) is longer than %s (%s)", pair[0], WrittenDuration(short), pair[1], WrittenDuration(long))
		}
	}
}

// leaseTooShort reports a lease, of the file or else the default, without room for a
// heartbeat; it is empty if there is room.
func (f *File) leaseTooShort() string {
	lease, refresh, margin := f.length(election+"lease_duration"), f.length(election+"refresh_interval"), f.length(election+"margin")
	lease = cmp.Or(lease, defaultLease)
	margin = cmp.Or(margin, lease/10)
	if refresh+margin < lease {
		return ""
	}
	return fmt.Sprintf("%slease_duration (%s) must be longer than refresh_interval (%s) plus margin (%s)",
		election, WrittenDuration(lease), WrittenDuration(refresh), WrittenDuration(margin))
}

// notifierNeeds are the keys needed by each kind; "|" separates alternatives.
var notifierNeeds = map[string][]string{
	"slack":        {"url|url_file"},
	"pagerduty":    {"routing_key|routing_key_file"},
	"webhook":      {"url|url_file"},
	"email":        {"smtp", "from", "to"},
	"alertmanager": {"url|url_file"},
}

var notifierName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// checkNotifier checks one notifier.
func (r *reader) checkNotifier(name string) {
	table := notifications + name
	at := r.file.tables[table]
	if !notifierName.MatchString(name) {
		r.fault(at, "a notifier cannot be named %s; its name takes letters, digits, _ and -", name)
		return
	}
	before := len(r.faults)
	kind := r.file.text(table + ".type")
	kind = cmp.Or(kind, name)
	needs, ok := notifierNeeds[kind]
	if !ok {
		r.fault(at, "%s needs type: one of %s", table, strings.Join(notifier.Types, ", "))
		return
	}
	for _, need := range needs {
		choices := strings.Split(need, "|")
		given := slices.DeleteFunc(slices.Clone(choices), func(name string) bool { return !r.file.set(table + "." + name) })
		switch {
		case len(given) == 0:
			r.fault(at, "%s needs %s", table, strings.Join(choices, " or "))
		case len(given) > 1:
			r.fault(at, "%s has %s: leave one out", table, strings.Join(given, " and "))
		}
	}
	if len(r.faults) > before {
		return
	}
	if err := notifier.Check(r.file.notifier(name)); err != nil {
		r.fault(at, "%s: %v", table, err)
	}
}
