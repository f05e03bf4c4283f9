package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

// TestShowHidesSecrets: every value with its origin, and no secret.
func TestShowHidesSecrets(t *testing.T) {
	t.Parallel()
	env := variables("PASSWORD", "secret1", "WEBHOOK", "https://hooks.example/secret2", "TENURE_LEASE", "20")
	file := mustParse(t, `
[database]
dsn = "postgres://app:${PASSWORD}@db/app?sslpassword=secret3"
[node]
name = "${NODE:-n1}"
[run]
roles = ["a", "${NODE:-n1}"]
[[alerts]]
condition = "up{path='${x}'} == 0" # a template of Prometheus, say
name = "down"
labels = { a_b = "c" }
[[alerts]]
name = "again"
condition = "up == 1"
[alerts.notifications.slack]
url = "${WEBHOOK}"
[alerts.notifications.hook]
type = "webhook"
url = "https://example/services/secret4"
secret = "whsec_c2VjcmV0NXNlY3JldDVzZWNyZXQ1c2VjcmV0NQ=="
`[1:], func(name string) (string, bool) {
		if name == "x" {
			return "${y}", true
		}
		return env(name)
	})
	c := newTestCommand(t, "--log-level", "error", "--health-interval", "3")
	var out strings.Builder
	if err := Show(&out, c.flags, file, env); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "secret1") || strings.Contains(out.String(), "secret2") ||
		strings.Contains(out.String(), "secret3") || strings.Contains(out.String(), "secret4") || strings.Contains(out.String(), "whsec_") {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
	for _, want := range []string{
		"[database]\ndsn = \"postgres://app:********@db/app?sslpassword=********\"  # tenure.toml:2\nlocal = false  # default\n",
		"name = \"n1\"  # tenure.toml:4\nlog_level = \"error\"  # --log-level\nlog_format = \"text\"  # default\n",
		"[cluster]\nname = \"default\"  # default\n",
		"lease_duration = \"20s\"  # TENURE_LEASE\n# refresh_interval: --health-interval says it\n# margin: a tenth of lease_duration (default)\n",
		"[run]\nroles = [\"a\", \"n1\"]  # tenure.toml:6\n",
		"\n[[alerts]]\nname = \"down\"  # tenure.toml:9\ncondition = \"up{path='$${y}'} == 0\"  # tenure.toml:8\nlabels.a_b = \"c\"  # tenure.toml:10\n",
		"\n[[alerts]]\nname = \"again\"  # tenure.toml:12\n",
		"\n[alerts.notifications.slack]\nurl = \"${WEBHOOK}\"  # tenure.toml:15\n",
		"\n[alerts.notifications.hook]\ntype = \"webhook\"  # tenure.toml:17\nurl = \"https://example/********\"  # tenure.toml:18\nsecret = \"********\"  # tenure.toml:19\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing:\n%s\nin:\n%s", want, out.String())
		}
	}
}

// TestShowMarksOverriddenValues: a value that something else outranks is not shown as if it took
// effect.
func TestShowMarksOverriddenValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		env  []string
		file string
		want string
	}{
		{nil, []string{"TENURE_DSN", "postgres://h/d"}, "database.local = true",
			"dsn = \"postgres://h/d\"  # TENURE_DSN\n# local: TENURE_DSN says it\n"},
		{[]string{"--local"}, []string{"TENURE_DSN", "postgres://h/d"}, "database.dsn = 'postgres://h/e'",
			"# dsn: --local says it\nlocal = true  # --local\n"},
		{[]string{"--dsn", "postgres://h/f"}, nil, "", "dsn = \"postgres://h/f\"  # --dsn\nlocal = false  # default\n"},
		{[]string{"--key", "7"}, nil, "run.roles = ['a']", "[run]\n# roles: --key says it\n"},
		{[]string{"--role", "b"}, nil, "run.roles = ['a']", "[run]\nroles = [\"b\"]  # --role\n"},
	} {
		var out strings.Builder
		if err := Show(&out, newTestCommand(t, test.args...).flags, mustParse(t, test.file, none), variables(test.env...)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("%q %q %q: missing:\n%s\nin:\n%s", test.args, test.env, test.file, test.want, out.String())
		}
	}
}

func TestShowReportsInvalidVariables(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := Show(&out, nil, nil, variables("TENURE_LEASE", "soon", "TENURE_LOCAL", "perhaps"))
	want := "invalid configuration: TENURE_LOCAL: it must be true or false\n" +
		"invalid configuration: TENURE_LEASE: a duration is written like 5s, 1m30s or 5.0"
	if err == nil || err.Error() != want || !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(out.String(), "# lease_duration: refused, see the error\n") {
		t.Errorf("the refused value is not marked:\n%s", out.String())
	}
}

// TestMaskHidesUnknownParts: what is known to be no secret is shown, and nothing else.
func TestMaskHidesUnknownParts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ dsn, want string }{
		{"postgres://app@db/app", "postgres://app@db/app"},
		{"postgres://app:S@db/app?sslmode=require", "postgres://app:********@db/app?sslmode=require"},
		{"postgres://app:S@S/S@db/app", "postgres://app:********@db/app"},
		{"postgres://app:S?S@db/app", "postgres://********"},
		{"postgres://db/app?user=u&password=S%20S&sslmode=require", "postgres://db/app?user=u&password=********&sslmode=require"},
		{"postgres://db/app?password=S@S", "postgres://********"},
		{"postgres://app:S@a:1,b:2/app", "postgres://app:********@a:1,b:2/app"},
		{"mysql://u:S@h:3306/d?tls=true", "mysql://u:********@h:3306/d?tls=true"},
		{"u:S@tcp(h:3306)/d?parseTime=true", "********"},
		{"host=h user=u password=S dbname=d", "host=h user=u password=******** dbname=d"},
		{`host=h password = 'S S\'S' dbname=d`, "host=h password = ******** dbname=d"},
		{`password=S\ S&S host=h`, "password=******** host=h"},
		{"PASSWORD='S S", "********"},
		{"password='S S", "password=********"},
		{"host=h password=S S dbname=d", "********"},
		{"host=h password=S SS=S dbname=d", "********"},
		{"host=h password='S'S S' dbname=d", "********"},
		{`host=h password=S\\ S`, "********"},
		{"postgres://db/app?password=S&S&sslmode=require", "postgres://********"},
		{"postgres://db/app?password=S&SS=S", "postgres://********"},
		{"mysql://h/d?password=S&S", "mysql://********"},
		{"sqlite:/var/lib/tenure.db", "sqlite:/var/lib/tenure.db"},
		{"S", "********"},
	} {
		if got := maskConnection(test.dsn); got != test.want {
			t.Errorf("%s is shown as %s; want %s", test.dsn, got, test.want)
		}
	}
	for _, test := range []struct{ template, want string }{
		{"${DSN}", "${DSN}"},
		{"${DSN:-postgres://u:S@h/d}", "${DSN}"},
		{"postgres://u:${PASSWORD:-S@S}@h/${DB:-d}", "postgres://u:********@h/${DB}"},
		{"host=h password=${P:-S S}", "host=h password=********"},
		{"$${S}", "********"},
		{"S${A}", "********"},
	} {
		if got := maskTemplate(&key{secret: connection}, test.template); got != test.want {
			t.Errorf("%s is shown as %s; want %s", test.template, got, test.want)
		}
	}
	for text, want := range map[string]string{
		"https://h/S": "https://h/********", "https://u:S@h/S": "https://h/********", "https://u:p@SSSS/S@h/": mask, "https://u:1?SSSS@h/": mask, "https://u:1#SSSS@h/": mask,
	} {
		if got := maskText(webhook, text); got != want {
			t.Errorf("%s is shown as %s; want %s", text, got, want)
		}
	}
	if got := maskTemplate(&key{secret: webhook}, "https://h/${TOKEN:-S}"); got != mask {
		t.Errorf("a secret in a URL is shown as %s", got)
	}
}

// TestCommandsAreMasked: an argument of a command can be a secret; the program is
// shown.
func TestCommandsAreMasked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value any
		want  string
	}{
		{[]string{"/bin/backup"}, `["/bin/backup"]`},
		{[]string{"/bin/backup", "--token=S", "S"}, `["/bin/backup", "` + mask + `", "` + mask + `"]`},
		{[]string{}, quoted(mask)},
		{"curl -H 'Authorization: S' https://h", quoted(mask)},
	} {
		for _, path := range []string{"run.command", "cron[].command"} {
			k := &keys[slices.IndexFunc(keys, func(k key) bool { return k.path == path })]
			if got := shown(k, test.value, "S"); got != test.want {
				t.Errorf("%s of %v: %s, want %s", path, test.value, got, test.want)
			}
		}
	}
}
