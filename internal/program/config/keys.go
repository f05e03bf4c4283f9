package config

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/notifier"
	"github.com/exactly-one/tenure/postgres"
)

// keys are all keys, in reading order. They include keys of features the program lacks,
// so one file serves different versions: see File.Unused.
var keys = func() []key {
	all := concat(databaseKeys, nodeKeys, clusterKeys, runKeys, serverKeys, oidcKeys, userKeys, linkKeys, alertKeys, cronKeys)
	for i := range all {
		k := &all[i]
		if k.flag != "" && k.variables == nil {
			k.variables = []string{"TENURE_" + strings.ToUpper(strings.ReplaceAll(k.flag, "-", "_"))}
		}
		k.evidence = cmp.Or(k.evidence, k.flag)
	}
	return all
}()

// Flags are the names of all flags with a key, whether a command has them or not.
func Flags() []string {
	var names []string
	for i := range keys {
		if keys[i].flag != "" {
			names = append(names, keys[i].flag)
		}
	}
	return names
}

func concat(groups ...[]key) []key {
	var all []key
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

var databaseKeys = []key{
	{path: "database.dsn", kind: text, flag: "dsn", instead: []string{"local"}, secret: connection,
		variables: []string{"TENURE_DSN", "PG_DSN", "DATABASE_URL"}, note: "none: a database must be named"},
	{path: "database.local", kind: boolean, flag: "local", instead: []string{"dsn"}, fallback: false},
	{path: "database.schema", kind: text, flag: "schema", fallback: postgres.DefaultSchema},
	{path: "database.prefix", kind: text, flag: "prefix", fallback: postgres.DefaultPrefix},
	{path: "database.manual_migrations", kind: boolean, flag: "manual-migrations", fallback: false},
	{path: "database.password_command", kind: text, flag: "password-command", secret: whole, note: "none: the connection string and the files of libpq"},
}

// A command run by this program finds its node in TENURE_NODE, so the variable for the
// name is another one.
var nodeKeys = []key{
	{path: "node.name", kind: text, flag: "name", variables: []string{"TENURE_NODE_NAME"}, note: "the host's name and the process id"},
	{path: "node.log_level", kind: text, flag: "log-level", live: true,
		check: oneOf("debug", "info", "warn", "error"), note: "warn, for commands info, and for acquire error"},
	{path: "node.log_format", kind: text, flag: "log-format", check: oneOf("text", "json"), fallback: "text"},
	{path: "node.roles", kind: texts, flag: "node-role", variables: []string{"TENURE_NODE_ROLES"}, note: "gateway, function, worker, scheduler"},
	{path: "node.capabilities", kind: texts, flag: "capability", variables: []string{"TENURE_NODE_CAPABILITIES"}, note: "none"},
	{path: "node.labels", kind: texts, flag: "label", variables: []string{"TENURE_NODE_LABELS"}, check: labels, note: "none"},
	{path: "node.address", kind: text, flag: "address", variables: []string{"TENURE_NODE_ADDRESS"}, note: "this machine's address"},
	{path: "node.http_port", kind: integer, flag: "http-port", variables: []string{"TENURE_NODE_HTTP_PORT"}, check: between(int64(0), 65535), note: "the port of --listen, or none"},
	{path: "node.grpc_port", kind: integer, flag: "grpc-port", variables: []string{"TENURE_NODE_GRPC_PORT"}, check: between(int64(0), 65535), note: "none"},
}

const (
	shortest     = time.Millisecond
	longest      = 24 * time.Hour
	defaultLease = 10 * time.Second // on PostgreSQL
)

var clusterKeys = []key{
	{path: "cluster.name", kind: text, flag: "cluster-name", fallback: "default"},
	{path: "cluster.retention", kind: duration, flag: "retention", check: between(time.Hour, 3650*24*time.Hour), note: "90 days"},

	{path: "cluster.leader_election.check_interval", kind: duration, flag: "check-interval", check: between(shortest, longest), fallback: 5 * time.Second},
	{path: "cluster.leader_election.lease_duration", kind: duration, flag: "lease", check: between(100*time.Millisecond, longest), note: "10s, on SQLite 3s"},
	{path: "cluster.leader_election.refresh_interval", kind: duration, flag: "refresh", instead: []string{"health-interval"},
		check: between(shortest, longest), note: "a third of lease_duration"},
	{path: "cluster.leader_election.margin", kind: duration, flag: "margin", check: between(shortest, longest), note: "a tenth of lease_duration"},
	{path: "cluster.leader_election.lock_timeout", kind: duration, flag: "lock-timeout", check: between(shortest, longest), fallback: 10 * time.Second},
	{path: "cluster.leader_election.fence_timeout", kind: duration, flag: "fence-timeout", check: between(shortest, longest), fallback: 5 * time.Second},
	{path: "cluster.leader_election.settle", kind: duration, flag: "settle", check: between(0, longest), note: "0s, with a command 200ms"},
	{path: "cluster.leader_election.failover_wait", kind: duration, flag: "failover-wait", check: between(0, longest), note: "lease_duration"},
	{path: "cluster.leader_election.synchronous_failover", kind: boolean, flag: "synchronous-failover", fallback: false},
	{path: "cluster.leader_election.retry_base", kind: duration, flag: "retry-base", check: between(shortest, longest), note: "1s if retry_max is set"},
	{path: "cluster.leader_election.retry_max", kind: duration, flag: "retry-max", check: between(shortest, longest), note: "30s if retry_base is set"},
	{path: "cluster.leader_election.reconnect_grace", kind: duration, flag: "reconnect-grace", check: between(0, longest), fallback: time.Duration(0)},
	{path: "cluster.leader_election.no_auto_reacquire", kind: boolean, flag: "no-auto-reacquire", fallback: false},
	{path: "cluster.leader_election.requires", kind: texts, flag: "require", variables: []string{"TENURE_REQUIRES"}, check: labels, note: "none"},
	{path: "cluster.leader_election.requires_node_role", kind: text, flag: "require-node-role", variables: []string{"TENURE_REQUIRES_NODE_ROLE"}, note: "none"},
	{path: "cluster.leader_election.prefers", kind: texts, flag: "prefer", variables: []string{"TENURE_PREFERS"}, check: labels, note: "none"},
	{path: "cluster.leader_election.priority", kind: integer, flag: "priority", check: between(int64(math.MinInt32), math.MaxInt32), fallback: int64(0)},
	{path: "cluster.leader_election.take_over_after", kind: duration, flag: "take-over-after", check: between(0, longest), fallback: time.Duration(0)},
	{path: "cluster.leader_election.no_leader", kind: boolean, flag: "no-leader", fallback: false},

	{path: "cluster.membership.heartbeat_interval", kind: duration, flag: "heartbeat-interval", check: between(shortest, longest), fallback: 5 * time.Second},
	{path: "cluster.membership.dead_threshold", kind: duration, flag: "dead-threshold", check: between(shortest, longest), fallback: 15 * time.Second},
	{path: "cluster.membership.mark_dead_nodes", kind: boolean, flag: "mark-dead-nodes", fallback: true},
	{path: "cluster.membership.min_nodes", kind: integer, flag: "min-nodes", check: between(int64(0), 10_000), fallback: int64(0)},
	{path: "cluster.membership.startup_timeout", kind: duration, flag: "startup-timeout", check: between(0, longest), note: "no limit"},
	{path: "cluster.membership.unique_names", kind: boolean, flag: "unique-names", fallback: false},

	{path: "shutdown.stop_timeout", kind: duration, flag: "stop-timeout", check: between(shortest, longest), fallback: 10 * time.Second},
	{path: "shutdown.drain_timeout", kind: duration, flag: "drain-timeout", check: between(shortest, longest), fallback: 30 * time.Second, live: true},
	{path: "shutdown.poll_interval", kind: duration, flag: "drain-poll-interval", check: between(shortest, longest), fallback: 100 * time.Millisecond, live: true},
	{path: "shutdown.force_after", kind: duration, flag: "force-after", check: between(shortest, longest),
		note: "drain_timeout, stop_timeout and two leases", live: true},
}

// A command run by this program finds its role in TENURE_ROLE, so the variable for the
// roles is another one.
var runKeys = []key{
	{path: "run.roles", kind: texts, flag: "role", instead: []string{"key", "key1", "key2"}, command: "run",
		variables: []string{"TENURE_RUN_ROLES"}, note: "none: a role must be named"},
	{path: "run.command", kind: command, secret: arguments, command: "run", evidence: "grace", note: "none: print the events"},
	{path: "run.grace", kind: duration, flag: "grace", command: "run", check: between(0, longest), note: "1s, or less with a short lease"},
	{path: "run.restart", kind: text, flag: "restart", command: "run", check: oneOf("never", "on-failure", "always"), fallback: "on-failure"},
	{path: "run.max_restarts", kind: integer, flag: "max-restarts", command: "run", check: between(int64(0), 1_000_000), fallback: int64(5)},
	{path: "run.slots", kind: integer, flag: "slots", command: "run", check: between(int64(1), 100), note: "none: one leader"},
	{path: "run.slots_per_node", kind: integer, flag: "slots-per-node", command: "run", check: between(int64(1), 100), fallback: int64(1)},
	{path: "run.health_command", kind: text, secret: whole, flag: "health-command", command: "run", note: "none: nothing is checked"},
	{path: "run.health_every", kind: duration, flag: "health-every", command: "run", check: between(shortest, longest), note: "10s"},
	{path: "run.once", kind: boolean, flag: "once", command: "run", fallback: false},
	{path: "run.pass_dsn", kind: boolean, flag: "pass-dsn", command: "run", fallback: false},
	{path: "run.next_within", kind: duration, flag: "next-within", command: "run", check: between(time.Second, 3650*24*time.Hour), note: "no limit"},
	{path: "run.no_leader_exit", kind: integer, flag: "no-leader-exit", command: "run", check: between(int64(0), 255), note: "wait for the role"},
}

var serverKeys = []key{
	{path: "http.listen", kind: text, flag: "listen", except: "proxy", check: address, note: "no server"},
	{path: "http.hosts", kind: texts, flag: "host", note: "addresses and private names"},
	{path: "http.token_file", kind: text, flag: "token-file", note: "none: writes are off"},
	{path: "http.viewer_token_file", kind: text, flag: "viewer-token-file", note: "none"},
	{path: "http.tls_cert", kind: text, flag: "tls-cert", note: "none: no TLS"},
	{path: "http.tls_key", kind: text, flag: "tls-key", note: "none: no TLS"},
	{path: "http.hsts", kind: duration, flag: "hsts", check: between(0, 3650*longest), note: "720h with tls_cert, else not sent"},
	{path: "http.external_url", kind: text, flag: "external-url", check: externalURL, note: "none: notifications have no link"},
	{path: "dashboard.enabled", kind: boolean, flag: "dashboard", fallback: true},
	{path: "dashboard.login_required", kind: boolean, flag: "login-required", fallback: false},
	{path: "dashboard.user_header", kind: text, flag: "user-header", note: "none"},
	{path: "dashboard.trusted_proxies", kind: texts, flag: "trusted-proxy", check: networks, note: "none"},
	{path: "dashboard.operators", kind: texts, flag: "operator", note: "all users that the proxy names"},
	{path: "metrics.prefix", kind: text, flag: "metrics-prefix", check: metricPrefix, fallback: "tenure"},
}

// alertEvidence is a flag only of the command that evaluates alerts.
const alertEvidence = "alert-interval"

var alertKeys = []key{
	{path: "alerts[].name", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts[].condition", kind: text, evidence: alertEvidence, check: promQL, live: true},
	{path: "alerts[].for", kind: duration, evidence: alertEvidence, check: both(between(0, 7*longest), milliseconds), fallback: time.Duration(0), live: true},
	{path: "alerts[].severity", kind: text, evidence: alertEvidence, check: oneOf(alerting.Severities...), fallback: defaultSeverity, live: true},
	{path: "alerts[].description", kind: text, evidence: alertEvidence, check: template, live: true},
	{path: "alerts[].runbook", kind: text, evidence: alertEvidence, check: template, live: true},
	{path: "alerts[].labels.*", kind: text, evidence: alertEvidence, check: template, live: true},
	{path: "alerts[].annotations.*", kind: text, evidence: alertEvidence, check: template, live: true},
	{path: "alerts[].notify", kind: texts, evidence: alertEvidence, live: true},

	{path: "alerts.notifications.*.type", kind: text, evidence: alertEvidence, check: oneOf(notifier.Types...), note: "the notifier's own name", live: true},
	{path: "alerts.notifications.*.url", kind: text, evidence: alertEvidence, check: webAddress, secret: webhook, live: true},
	{path: "alerts.notifications.*.url_file", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.channel", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.routing_key", kind: text, evidence: alertEvidence, secret: whole, live: true},
	{path: "alerts.notifications.*.routing_key_file", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.secret", kind: text, evidence: alertEvidence, secret: whole, live: true},
	{path: "alerts.notifications.*.secret_file", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.smtp", kind: text, evidence: alertEvidence, check: address, live: true},
	{path: "alerts.notifications.*.from", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.to", kind: texts, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.username", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.password", kind: text, evidence: alertEvidence, secret: whole, live: true},
	{path: "alerts.notifications.*.password_file", kind: text, evidence: alertEvidence, live: true},
	{path: "alerts.notifications.*.per_minute", kind: integer, evidence: alertEvidence, check: between(int64(1), 6000), fallback: int64(60), live: true},
}

// userEvidence is a flag only of the command that serves the dashboard.
const userEvidence = "login-required"

var userKeys = []key{
	{path: "dashboard.users[].name", kind: text, evidence: userEvidence, live: true},
	{path: "dashboard.users[].access", kind: text, evidence: userEvidence, check: oneOf(viewerAccess, operatorAccess), fallback: viewerAccess, live: true},
	{path: "dashboard.users[].password_hash", kind: text, evidence: userEvidence, secret: whole, check: hashed, live: true},
}

// cronEvidence is a flag only of the command that runs schedules.
const cronEvidence = "missed-after"

var cronKeys = []key{
	{path: "cron[].name", kind: text, evidence: cronEvidence, live: true},
	{path: "cron[].schedule", kind: text, evidence: cronEvidence, live: true},
	{path: "cron[].command", kind: command, secret: arguments, evidence: cronEvidence, live: true},
	{path: "cron[].timezone", kind: text, evidence: cronEvidence, fallback: "UTC", live: true},
	{path: "cron[].catch_up", kind: text, evidence: cronEvidence, check: oneOf("none", "latest", "all"), fallback: "none", live: true},
	{path: "cron[].catch_up_limit", kind: integer, evidence: cronEvidence, check: between(int64(1), 100_000), fallback: int64(100), live: true},
	{path: "cron[].overlap", kind: text, evidence: cronEvidence, check: oneOf("skip", "queue", "allow"), fallback: "skip", live: true},
	{path: "cron[].policy", kind: text, evidence: cronEvidence, check: oneOf("at-most-once", "at-least-once"), fallback: "at-most-once", live: true},
	{path: "cron[].jitter", kind: duration, evidence: cronEvidence, check: between(0, longest), fallback: time.Duration(0), live: true},
	{path: "cron[].timeout", kind: duration, evidence: cronEvidence, check: between(shortest, 7*longest), note: "none", live: true},
	{path: "cron[].retries", kind: integer, evidence: cronEvidence, check: between(int64(0), 1000), fallback: int64(0), live: true},
	{path: "cron[].retry_exit_codes", kind: texts, evidence: cronEvidence, check: exitCodes, note: "none: required with retries", live: true},
	{path: "cron[].retry_base", kind: duration, evidence: cronEvidence, check: between(shortest, longest), fallback: time.Second, live: true},
	{path: "cron[].retry_max", kind: duration, evidence: cronEvidence, check: between(shortest, longest), fallback: 30 * time.Second, live: true},
}
