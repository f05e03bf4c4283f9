package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

// none is an empty environment.
func none(string) (string, bool) { return "", false }

// variables is an environment of the given variables.
func variables(pairs ...string) Environment {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func mustParse(t *testing.T, text string, env Environment) *File {
	t.Helper()
	file, err := Parse("tenure.toml", []byte(text), env)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return file
}

// TestErrorsNamePlaceAndRemedy: errors are reported in whole lines, each with its place and with what
// to write instead.
func TestErrorsNamePlaceAndRemedy(t *testing.T) {
	t.Parallel()
	const election = "[cluster.leader_election]\n"
	for _, test := range []struct {
		name, file string
		want       []string // the lines, without the file's name
	}{
		{"unknown key", election + "lease_durations = '5s'",
			[]string{`2:1: unknown key "lease_durations" in [cluster.leader_election]; did you mean "lease_duration"?`}},
		{"unknown key, characters counted", "[node]\n\"ü\" = 1",
			[]string{`2:1: unknown key "ü" in [node]; known are address, capabilities, grpc_port, http_port, labels, log_format, log_level, name, roles`}},
		{"key of another table", "[node]\nlease_duration = '5s'",
			[]string{`2:1: unknown key "lease_duration" in [node]; it belongs in [cluster.leader_election]`}},
		{"key without its table", "dsn = 'postgres://h/d'",
			[]string{`1:1: unknown key "dsn"; it belongs in [database]`}},
		{"unknown table", "[clutser]\nname = 'x'\nfoo = 1\n[node]\nanme = 'x'", []string{
			`1:2: unknown table "clutser"; did you mean "cluster"?`,
			`5:1: unknown key "anme" in [node]; did you mean "name"?`}},
		{"unknown table within", "[cluster.leader_elections]",
			[]string{`1:10: unknown table "leader_elections" in [cluster]; did you mean "leader_election"?`}},
		{"unknown table, nothing near", "[redis]",
			[]string{`1:2: unknown table "redis"; known are alerts, cluster, cron, dashboard, database, http, links, metrics, node, run, shutdown`}},
		{"unknown key in an entry", "[[alerts]]\nname = 'a'\ncondition = 'up'\nform = '1s'",
			[]string{`4:1: unknown key "form" in [alerts[0]]; did you mean "for"?`}},
		{"unknown key of a notifier", "[alerts.notifications.slack]\nurl = 'https://h/s'\nurls = 'x'",
			[]string{`3:1: unknown key "urls" in [alerts.notifications.slack]; did you mean "url"?`}},
		{"dotted and inline", "node.nam = 'a'\nhttp = { lsten = ':1' }", []string{
			`1:6: unknown key "nam" in [node]; did you mean "name"?`,
			`2:10: unknown key "lsten" in [http]; did you mean "listen"?`}},

		{"integer for a string", "[node]\nname = 5", []string{`2:8: node.name: it must be a string, not an integer`}},
		{"labels", "[node]\nlabels = ['zone=eu', 'zone=us']\nhttp_port = 65536", []string{
			`2:1: node.labels: the label "zone" is given twice`,
			`3:13: node.http_port: 65536 is out of range; it must be between 0 and 65535`}},
		{"no label", "[node]\nlabels = ['=eu']", []string{`2:1: node.labels: "=eu" is not a label like zone=eu`}},
		{"string for an integer", "[cluster.membership]\nmin_nodes = '3'",
			[]string{`2:13: cluster.membership.min_nodes: it must be an integer, not a string`}},
		{"string for a boolean", "[run]\nonce = 'yes'", []string{`2:8: run.once: it must be true or false, not a string`}},
		{"string for a list", "[run]\nroles = 'a'", []string{`2:9: run.roles: it must be a list of strings, not a string`}},
		{"integer in a list", "[run]\nroles = ['a', 1]",
			[]string{`2:1: run.roles: it must be a list of strings, but has an integer in it`}},
		{"date", "[node]\nname = 2026-01-01", []string{`2:8: node.name: it must be a string, not a date or time`}},
		{"table for a key", "[database]\ndsn = { host = 'h' }", []string{`2:7: database.dsn: it must be a string, not a table`}},
		{"header for a key", "[node.name]", []string{`1:7: node.name is not a table but a string`}},
		{"below a key", "node.name.first = 'x'", []string{`1:11: node.name is not a table but a string`}},
		{"key for a table", "shutdown = 5", []string{`1:12: shutdown is a table: write [shutdown]`}},
		{"list for a table", "[[node]]\nname = 'x'", []string{`1:3: [node] is one table, not a list of tables: write single brackets`}},
		{"table for a list", "[cron]\nname = 'x'", []string{`1:2: cron is a list of tables: write [[cron]]`}},
		{"no table in a list", "cron = [1]", []string{`1:9: cron is a list of tables, and this is none`}},

		{"no unit", election + "lease_duration = 5\nsettle = '7'", []string{
			`2:18: cluster.leader_election.lease_duration: 5 has no unit; write "5s" if seconds are meant`,
			`3:10: cluster.leader_election.settle: 7 has no unit; write "7s" if seconds are meant`}},
		{"wrong unit", election + "lease_duration = '10sec'\nrefresh_interval = '1 min'\nmargin = '1x'\nsettle = '1d'", []string{
			`2:18: cluster.leader_election.lease_duration: "sec" is not a unit of time; the units are h, m, s, ms, us and ns: write "10s"`,
			`3:20: cluster.leader_election.refresh_interval: "min" is not a unit of time; the units are h, m, s, ms, us and ns: write "1m"`,
			`4:10: cluster.leader_election.margin: "x" is not a unit of time; the units are h, m, s, ms, us and ns`,
			`5:10: cluster.leader_election.settle: "d" is not a unit of time; the units are h, m, s, ms, us and ns: write "24h"`}},
		{"no duration", election + "lease_duration = 'soon'\nmargin = true", []string{
			`2:18: cluster.leader_election.lease_duration: a duration is written like 5s, 1m30s or 5.0`,
			`3:10: cluster.leader_election.margin: it must be a duration like "5s", not true or false`}},
		{"durations out of range", election + "lease_duration = '1ms'\nmargin = '-1s'\nretry_max = '25h'\nfence_timeout = 0.0\nsettle = inf", []string{
			`2:18: cluster.leader_election.lease_duration: 1ms is out of range; it must be between 100ms and 24h`,
			`3:10: cluster.leader_election.margin: -1s is out of range; it must be between 1ms and 24h`,
			`4:13: cluster.leader_election.retry_max: 25h is out of range; it must be between 1ms and 24h`,
			`5:17: cluster.leader_election.fence_timeout: 0s is out of range; it must be between 1ms and 24h`,
			`6:10: cluster.leader_election.settle: the duration is out of range`}},
		{"numbers out of range", "[run]\nno_leader_exit = 256\n[cluster.membership]\nmin_nodes = 99999999999999999999", []string{
			`2:18: run.no_leader_exit: 256 is out of range; it must be between 0 and 255`,
			`4:13: cluster.membership.min_nodes: the number is out of range`}},
		{"choice", "[node]\nlog_level = 'wran'\nlog_format = 'xml'", []string{
			`2:13: node.log_level: it is "wran"; it must be debug, info, warn or error: did you mean "warn"?`,
			`3:14: node.log_format: it is "xml"; it must be text or json`}},
		{"address", "[http]\nlisten = '8080'\n[metrics]\nprefix = '1a'", []string{
			`2:10: http.listen: "8080" is not an address like 127.0.0.1:8080`,
			`4:10: metrics.prefix: "1a" cannot begin the name of a metric: use letters, digits and _, and do not begin with a digit`}},
		{"port", "[http]\nlisten = ':65536'", []string{`2:10: http.listen: the port "65536" is not a number from 0 to 65535`}},
		{"empty", "[node]\nname = ''\n[run]\nroles = []\ncommand = ['']", []string{
			`2:8: node.name: it is empty; leave the key out for the default`,
			`4:1: run.roles: it is empty; leave the key out for the default`,
			`5:1: run.command: an element is empty`}},

		{"lease too short", election + "lease_duration = '10s'\nrefresh_interval = '9s'",
			[]string{`2:1: cluster.leader_election.lease_duration (10s) must be longer than refresh_interval (9s) plus margin (1s)`}},
		{"backoff", election + "retry_base = '2s'\nretry_max = '1s'",
			[]string{`2:1: cluster.leader_election.retry_base (2s) is longer than cluster.leader_election.retry_max (1s)`}},
		{"two databases", "[database]\nlocal = true\ndsn = 'postgres://h/d'",
			[]string{`2:1: database.local and database.dsn exclude each other: leave one out`}},
		{"half of a proxy", "[dashboard]\nuser_header = 'X-User'", []string{`2:1: dashboard.user_header needs dashboard.trusted_proxies`}},
		{"no network", "[dashboard]\nuser_header = 'X-User'\ntrusted_proxies = ['10.0.0.7', '10.0.0.0/99']",
			[]string{`3:1: dashboard.trusted_proxies: "10.0.0.0/99" is neither an address nor a network, such as 10.0.0.7 or 10.0.0.0/8`}},
		{"half of TLS", "[http]\ntls_key = 'k'", []string{`2:1: http.tls_key needs http.tls_cert`}},
		{"alert", "[[alerts]]\nname = 'a'\n[[alerts]]\nname = 'a'\ncondition = 'up'", []string{
			`1:3: alerts[0] needs condition`, `4:1: the name "a" is already used in line 2`}},
		{"users", "[[dashboard.users]]\nname = 'a'\n[[dashboard.users]]\nname = 'a'\npassword_hash = '$2b$12$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'", []string{
			`1:13: dashboard.users[0] needs password_hash`, `4:1: the name "a" is already used in line 2`}},
		{"a user's values", "[[dashboard.users]]\nname = 'a'\naccess = 'admin'\npassword_hash = 'secret'", []string{
			`3:10: dashboard.users[0].access: it is "admin"; it must be viewer or operator`,
			`4:17: dashboard.users[0].password_hash: the hash is not of the form $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH or $2b$12$…: tenure serve password makes one`}},
		{"links", "[links.role]\nLogs = 'javascript:alert(1)'\nGraphs = 'https://g/{rolle}'\n[links.term]\nx = 'https://g'", []string{
			`2:8: links.role.Logs: the address must begin with https:// or http:// and a host, without a user`,
			`3:10: links.role.Graphs: {rolle} is not known here; a link on a role may contain {role}, {node}, {cluster}, {time}`,
			`4:8: unknown table "term" in [links]; known are alert, node, role`}},
		{"name of a link", "[links.node]\n'a\u202eb' = 'https://g'", []string{
			`2:1: links.node: the name of a link must have 1 to 40 printable characters`}},
		{"too many links", "[links.role]\n" + manyLinks(21), []string{`1:8: links.role has 21 links; it must have at most 20`}},
		{"provider", "[dashboard.oidc]\nissuer = 'http://id.example.com'\nviewer_emails = ['*']", []string{
			`2:10: dashboard.oidc.issuer: it must begin with https://, unless it is on this machine`,
			`3:1: dashboard.oidc.viewer_emails: "*" is not an e-mail address or *@DOMAIN`}},
		{"half of a provider", "[dashboard.oidc]\nviewer_groups = ['dev']", []string{
			`1:12: dashboard.oidc needs issuer`, `1:12: dashboard.oidc needs client_id`}},
		{"provider without users", "[dashboard.oidc]\nissuer = 'https://id.example.com'\nclient_id = 'tenure'", []string{
			`1:12: dashboard.oidc needs one of operator_emails, operator_groups, viewer_emails, viewer_groups: no user could log in`}},
		{"cron", "[[cron]]\noverlap = 'skp'\n", []string{
			`2:11: cron[0].overlap: it is "skp"; it must be skip, queue or allow: did you mean "skip"?`}},
		{"cron retries", "[[cron]]\nname = 'a'\nschedule = '@daily'\ncommand = 'x'\nretries = 2\nretry_base = '1m'\n[[cron]]\nname = 'b'\nschedule = '@daily'\ncommand = 'x'\nretry_max = '2s'\n", []string{
			`5:1: cron[0].retries needs cron[0].retry_exit_codes`,
			`6:1: cron[0].retry_base (1m) is longer than cron[0].retry_max (30s)`,
			`11:1: cron[1].retry_max needs cron[1].retries`}},
		{"cron exit codes", "[[cron]]\nretry_exit_codes = ['0']\n", []string{
			`2:1: cron[0].retry_exit_codes: "0" is not an exit code from 1 to 255`}},
		{"incomplete cron", "[[cron]]\noverlap = 'skip'\n", []string{
			`1:3: cron[0] needs name`, `1:3: cron[0] needs schedule`, `1:3: cron[0] needs command`}},
		{"what cron does not understand", "[[cron]]\nname = \"a\\n\"\nschedule = '0 0 30 2 *'\ncommand = 'x'\n[[cron]]\nname = 'b'\nschedule = 'often'\ncommand = 'x'\ntimezone = 'Europe/Atlantis'\n", []string{
			`2:1: cron[0].name: the name contains the control character U+000A`,
			`3:1: cron[0].schedule: the schedule "0 0 30 2 *": it never ticks: no such day exists`,
			`7:1: cron[1].schedule: the schedule "often": the number of fields is 1; use minute, hour, day of month, month and day of week, optionally with seconds first`,
			`9:1: cron[1].timezone: the time zone "Europe/Atlantis" is unknown here: use a name of the IANA database, such as Europe/Berlin; a machine without that database needs the package tzdata`}},
		{"notifiers", "[alerts.notifications.ops]\n[alerts.notifications.pagerduty]\n[alerts.notifications.email]\nfrom = 'a@b'\n[alerts.notifications.slack]\nurl = 'https://a/b'\nurl_file = 'c'", []string{
			`1:23: alerts.notifications.ops needs type: one of slack, pagerduty, webhook, email, alertmanager`,
			`2:23: alerts.notifications.pagerduty needs routing_key or routing_key_file`,
			`3:23: alerts.notifications.email needs smtp`, `3:23: alerts.notifications.email needs to`,
			`5:23: alerts.notifications.slack has url and url_file: leave one out`}},
		{"notifier's name", "[alerts.notifications.'a:b']", []string{
			`1:23: a notifier cannot be named "a:b"; its name takes letters, digits, _ and -`}},

		{"duplicate key", "[node]\nname = 'a'\nlog_level = 'info'\nname = 'b'", []string{`4:1: node.name is already set in line 2`}},
		{"duplicate table", "[node]\nname = 'a'\n[http]\n[node]\nlog_level = 'info'", []string{`4:2: table node already exists`}},
		{"notifier before alerts", "[alerts.notifications.slack]\nurl = 'https://a/b'\n[[alerts]]\nname = 'a'\ncondition = 'up'",
			[]string{`3:3: write [[alerts]] before the tables that begin with [alerts.: TOML does not allow it the other way round`}},
		{"syntax", "[node]\nname = \n", []string{"2:8: unexpected character U+000A at start of value"}},
		{"syntax after another fault", "[node]\nnam = 'a'\nlog_level = debug", []string{
			`2:1: unknown key "nam" in [node]; did you mean "name"?`, "3:13: unexpected character U+0064 'd' at start of value"}},

		{"UTF-16", "\xff\xfe[\x00", []string{"the file is in UTF-16; save it as UTF-8"}},
		{"Latin-1", "[node]\nname = 'M\xfcller'", []string{"2:10: the byte 0xFC is not UTF-8; save the file as UTF-8"}},
		{"large", strings.Repeat("#", maxSize+1), []string{"the file is larger than 1048576 bytes"}},

		{"unset variable", "[node]\nname = '${NODE}'", []string{
			`2:8: node.name: the variable NODE is not set; set it, or write ${NODE:-default}`}},
		{"unset variable in a list", "[run]\nroles = ['${ROLE}']", []string{
			`2:1: run.roles: the variable ROLE is not set; set it, or write ${ROLE:-default}`}},
		{"open variable", "[node]\nname = '${NODE'", []string{
			`2:8: node.name: a ${ has no closing }; write $${ for the characters themselves`}},
		{"no variable", "[node]\nname = '${a b}'", []string{
			`2:8: node.name: a ${ } does not hold the name of a variable; write ${NAME} or ${NAME:-default}, and $${ for the characters themselves`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file, err := Parse("tenure.toml", []byte(test.file), none)
			if err == nil || file != nil {
				t.Fatalf("accepted: %v", file)
			}
			var want []string
			for _, line := range test.want {
				separator := ":"
				if line[0] < '0' || line[0] > '9' {
					separator = ": "
				}
				want = append(want, "tenure.toml"+separator+line)
			}
			if got := err.Error(); got != strings.Join(want, "\n") {
				t.Errorf("the error is\n%s\nbut should be\n%s", got, strings.Join(want, "\n"))
			}
			if !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Error("the error is not of the category ErrInvalidConfig")
			}
		})
	}
}

// TestManyErrorsAreShortened: a file of another kind is refused soon and in few lines.
func TestManyErrorsAreShortened(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "k%d = 1\n", i)
	}
	_, err := Parse("tenure.toml", []byte(text.String()), none)
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	if last := lines[len(lines)-1]; len(lines) != maxReported+1 || last != "tenure.toml: and 49975 more errors" {
		t.Errorf("%d lines, the last is %q", len(lines), last)
	}
}

// TestErrorsKeepSecrets: no error repeats the value of a key that may be secret.
func TestErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, file := range []string{
		"[database]\ndsn = ['" + secret + "']",
		"[database]\ndsn = 'postgres://u:${" + secret + "'",
		"[database]\ndsn = 'postgres://u:${ " + secret + "}@h'",
		"[alerts.notifications.slack]\nurl = 'ftp://h/" + secret + "'",
		"[alerts.notifications.slack]\nurl = 'https://h/%zz" + secret + "'",
		"[database]\ndsn = '" + secret + "'\ndsn = '" + secret + "'",
	} {
		if _, err := Parse("tenure.toml", []byte(file), none); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// manyLinks are the lines of some links.
func manyLinks(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "n%d = 'https://g'\n", i)
	}
	return lines.String()
}
