package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// TestValuesAreReadInEveryForm: each kind of value, in each form in which it can be written.
func TestValuesAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	env := variables("NAME", "n1", "COUNT", "3", "YES", "true", "EMPTY", "", "INJECTION", "x\"\n[run]\nonce = true")
	file := mustParse(t, "\ufeff"+`
node.name = "${NAME}-$${NAME}-${EMPTY}${EMPTY:-e}${MISSING:-a:-b}"
http = { listen = ":80", token_file = '${INJECTION}' }
[cluster.leader_election]
lease_duration = "1m30s"
refresh_interval = 5.0
margin = "2.5"
settle = "0s"
[cluster.membership]
min_nodes = "${COUNT}"
unique_names = "${YES}"
[run]
roles = ["a,b", "${NAME}"]
command = "exec ${NAME} | cat"
no_leader_exit = 0x1F
[shutdown] # nothing in it
[[cron]]
name = "first"
schedule = "@every 1h"
command = ["backup", ""]
[[cron]]
name = "second"
schedule = "0 3 * * *"
command = "true"
[[alerts]]
name = "none leads"
condition = "up == 0"
labels = { team = "ops", a_b = "" }
[alerts.annotations]
summary = "read me"
[alerts.notifications."slack"]
url = "https://hooks/x"
[[alerts]]
name = "again"
condition = "up == 1"
labels.team = "dev"
`, env)
	for path, want := range map[string]any{
		"node.name":                                "n1-${NAME}-ea:-b",
		"http.listen":                              ":80",
		"http.token_file":                          "x\"\n[run]\nonce = true",
		"cluster.leader_election.lease_duration":   90 * time.Second,
		"cluster.leader_election.refresh_interval": 5 * time.Second,
		"cluster.leader_election.margin":           2500 * time.Millisecond,
		"cluster.leader_election.settle":           time.Duration(0),
		"cluster.membership.min_nodes":             int64(3),
		"cluster.membership.unique_names":          true,
		"run.roles":                                []string{"a,b", "n1"},
		"run.command":                              []string{"/bin/sh", "-c", "exec n1 | cat"},
		"run.no_leader_exit":                       int64(31),
		"cron[0].name":                             "first",
		"cron[0].command":                          []string{"backup", ""},
		"cron[1].name":                             "second",
		"cron[1].command":                          []string{"/bin/sh", "-c", "true"},
		"alerts[0].labels.team":                    "ops",
		"alerts[0].labels.a_b":                     "",
		"alerts[0].annotations.summary":            "read me",
		"alerts.notifications.slack.url":           "https://hooks/x",
		"alerts[1].labels.team":                    "dev",
		"run.once":                                 nil,
	} {
		if got := file.lookup(path).value; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v; want %#v", path, got, want)
		}
	}
	if got := file.Command(); !reflect.DeepEqual(got, []string{"/bin/sh", "-c", "exec n1 | cat"}) {
		t.Errorf("Command: %q", got)
	}
}

// TestDefaultLeaseGivesNoticesOnly: times that the default lease is too short for are not an
// error, since a flag may set the lease.
func TestDefaultLeaseGivesNoticesOnly(t *testing.T) {
	t.Parallel()
	file := mustParse(t, "[cluster.leader_election]\nrefresh_interval = '20s'", none)
	notices := file.Notices()
	want := "tenure.toml: cluster.leader_election.lease_duration (10s) must be longer than refresh_interval (20s) plus margin (1s); " +
		"the lease is the default, unless a flag or a variable sets it"
	if len(notices) != 1 || notices[0] != want {
		t.Errorf("notices: %q", notices)
	}
}

func TestLoadReadsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tenure.toml")
	if err := os.WriteFile(path, []byte("[node]\nname = 'a'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Load(path, none)
	if err != nil || file.text("node.name") != "a" {
		t.Fatalf("Load: %v", err)
	}
	for _, bad := range []string{path + ".missing", filepath.Dir(path)} {
		_, err := Load(bad, none)
		if err == nil || !strings.HasPrefix(err.Error(), bad+": the file cannot be read: ") || strings.Count(err.Error(), bad) != 1 {
			t.Errorf("Load(%s): %v", bad, err)
		}
	}
}

// FuzzParse: no input makes Parse panic, and what it accepts has known keys only,
// can be shown, and is read again as it was.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "[node]\nname = 'a'", "a.b.c = {d = [1, {e = 2}]}", "[[alerts]]\nname='a'\ncondition='b'\nlabels = {x='y'}",
		"[[cron]]\n[cron.x]", "cron = [{name='a', schedule='b', command='c'}]", "[alerts.notifications.slack]\nurl='https://h/${A:-b}'",
		"alerts.notifications.'a.b'.url='x'", "[cluster.leader_election]\nlease_duration = 1e300", "\"\"=1", "[alerts.notifications.\"\"]",
		"[database]\ndsn = '${A}${B:-c}$${'", "[database]\ndsn = 'n = #{B:-c}$${'", "[run]\nroles = ['a', 'b']\ncommand = 'x'", "[[[", "x = 0x", "[node]\r\nname = \"\\u0000\"",
	} {
		f.Add(seed)
	}
	known := map[string]bool{}
	for i := range keys {
		known[keys[i].path] = true
	}
	env := variables("A", "value")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("tenure.toml", []byte(text), env)
		if err != nil {
			return
		}
		for _, s := range file.ordered() {
			if !known[s.key.path] {
				t.Fatalf("accepted the unknown key %s", s.path)
			}
		}
		var out strings.Builder
		if err := Show(&out, nil, file, none); err != nil {
			t.Fatalf("Show: %v", err)
		}
		if err := toml.Unmarshal([]byte(out.String()), &map[string]any{}); err != nil {
			t.Fatalf("what Show printed is no TOML: %v\n%s", err, out.String())
		}
		again, err := Parse("again.toml", []byte(out.String()), env)
		if err != nil { // a masked value, or times that do not fit the default lease
			if !strings.Contains(out.String(), mask) && file.leaseTooShort() == "" {
				t.Fatalf("what Show printed is refused: %v\n%s", err, out.String())
			}
			return
		}
		for _, s := range file.ordered() {
			if got := again.lookup(s.path).value; s.key.secret == open && !reflect.DeepEqual(got, s.value) {
				t.Fatalf("%s was %#v and is %#v", s.path, s.value, got)
			}
		}
		if changes := Diff(file, file); len(changes) > 0 {
			t.Fatalf("a file differs from itself: %v", changes)
		}
		Diff(nil, file)
		file.Notices()
	})
}
