package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
)

// testCommand has flags as the commands of the program have them.
type testCommand struct {
	flags  *pflag.FlagSet
	dsn    string
	lease  shortDuration
	health shortDuration
	roles  []string
	keys   []string
	local  bool
	level  string
}

// shortDuration is a flag that takes any duration up to 5 minutes.
type shortDuration struct{ value time.Duration }

func (d *shortDuration) Set(s string) error {
	parsed, err := parseDuration(s)
	if err == nil && parsed > 5*time.Minute {
		return errors.New("too long for this command")
	}
	d.value = parsed
	return err
}
func (d *shortDuration) String() string { return WrittenDuration(d.value) }
func (*shortDuration) Type() string     { return "duration" }

func newTestCommand(t *testing.T, args ...string) *testCommand {
	t.Helper()
	c := &testCommand{flags: pflag.NewFlagSet("test", pflag.ContinueOnError)}
	c.flags.StringVar(&c.dsn, "dsn", "", "")
	c.flags.BoolVar(&c.local, "local", false, "")
	c.flags.Var(&c.lease, "lease", "")
	c.flags.Var(&c.health, "refresh", "")
	c.flags.Var(&c.health, "health-interval", "")
	c.flags.StringArrayVar(&c.roles, "role", nil, "")
	c.flags.StringArrayVar(&c.keys, "key", nil, "")
	c.flags.StringVar(&c.level, "log-level", "warn", "")
	if err := c.flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c
}

const fullFile = `
[database]
dsn = "postgres://file/db"
[node]
log_level = "info"
[cluster.leader_election]
lease_duration = "30s"
refresh_interval = "4s"
[run]
roles = ["a,1", "b"]
`

// TestFlagOverridesVariableFileAndDefault: the command line, then the environment, then the file, then the
// default; and each value knows its origin.
func TestFlagOverridesVariableFileAndDefault(t *testing.T) {
	t.Parallel()
	all := []string{"TENURE_DSN", "postgres://variable/db", "TENURE_LEASE", "1m", "TENURE_REFRESH", "3", "TENURE_RUN_ROLES", "c, d", "TENURE_LOG_LEVEL", "debug"}
	for _, test := range []struct {
		name string
		args []string
		env  []string
		file string
		want map[string]string // values by flag
		from map[string]string // origins by flag
	}{
		{"defaults", nil, nil, "",
			map[string]string{"dsn": "", "lease": "0s", "log-level": "warn", "role": "[]"},
			map[string]string{"dsn": "", "lease": ""}},
		{"file", nil, nil, fullFile,
			map[string]string{"dsn": "postgres://file/db", "lease": "30s", "refresh": "4s", "log-level": "info", "role": `["a,1",b]`},
			map[string]string{"dsn": "tenure.toml:3: database.dsn", "role": "tenure.toml:10: run.roles"}},
		{"environment", nil, all, fullFile,
			map[string]string{"dsn": "postgres://variable/db", "lease": "1m", "refresh": "3s", "log-level": "debug", "role": "[c,d]"},
			map[string]string{"dsn": "TENURE_DSN", "lease": "TENURE_LEASE"}},
		{"environment without a file", nil, all, "",
			map[string]string{"dsn": "postgres://variable/db", "lease": "1m"}, nil},
		{"command line", []string{"--dsn", "postgres://flag/db", "--lease", "2m", "--refresh", "1", "--role", "e", "--log-level", "error"}, all, fullFile,
			map[string]string{"dsn": "postgres://flag/db", "lease": "2m", "refresh": "1s", "log-level": "error", "role": "[e]"},
			map[string]string{"dsn": "--dsn", "lease": "--lease"}},
		{"another flag that says the same", []string{"--health-interval", "2", "--key", "7", "--local"}, all, fullFile,
			map[string]string{"dsn": "", "local": "true", "refresh": "2s", "role": "[]", "key": "[7]"},
			map[string]string{"health-interval": "--health-interval", "refresh": ""}},
		{"a variable outranks what says the same in the file", nil, []string{"TENURE_DSN", "postgres://variable/db"}, "[database]\nlocal = true",
			map[string]string{"dsn": "postgres://variable/db", "local": "false"}, nil},
		{"variables that exclude each other meet in the command", nil, []string{"TENURE_DSN", "postgres://variable/db", "TENURE_LOCAL", "true"}, "",
			map[string]string{"dsn": "postgres://variable/db", "local": "true"}, nil},
		{"second variable", nil, []string{"TENURE_DSN", "", "DATABASE_URL", "postgres://url/db", "PG_DSN", "postgres://pg/db"}, fullFile,
			map[string]string{"dsn": "postgres://pg/db"}, map[string]string{"dsn": "PG_DSN"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var file *File
			if test.file != "" {
				file = mustParse(t, test.file, none)
			}
			c := newTestCommand(t, test.args...)
			if err := Apply("run", c.flags, file, variables(test.env...)); err != nil {
				t.Fatal(err)
			}
			for name, want := range test.want {
				if got := c.flags.Lookup(name).Value.String(); got != want {
					t.Errorf("--%s is %s; want %s", name, got, want)
				}
			}
			for name, want := range test.from {
				if got := Origin(c.flags, name); got != want {
					t.Errorf("the origin of --%s is %q; want %q", name, got, want)
				}
			}
		})
	}
}

// TestApplyLeavesOtherCommandsAlone: what concerns one command leaves the others alone.
func TestApplyLeavesOtherCommandsAlone(t *testing.T) {
	t.Parallel()
	c := newTestCommand(t)
	if err := Apply("step-down", c.flags, mustParse(t, fullFile, none), variables("TENURE_RUN_ROLES", "x")); err != nil {
		t.Fatal(err)
	}
	if len(c.roles) != 0 || c.dsn == "" {
		t.Errorf("roles %q, dsn %q", c.roles, c.dsn)
	}
}

// TestApplyErrorsNameTheOrigin: each error names where the value came from and does not repeat
// it, and all errors are reported.
func TestApplyErrorsNameTheOrigin(t *testing.T) {
	t.Parallel()
	c := newTestCommand(t)
	file := mustParse(t, "[cluster.leader_election]\nlease_duration = '6m'\n", none)
	err := Apply("run", c.flags, file, variables("TENURE_REFRESH", "1x", "TENURE_LOG_LEVEL", "dbug"))
	want := []string{
		`invalid configuration: TENURE_LOG_LEVEL: it is "dbug"; it must be debug, info, warn or error: did you mean "debug"?`,
		`invalid configuration: TENURE_REFRESH: "x" is not a unit of time; the units are h, m, s, ms, us and ns`,
		"invalid configuration: tenure.toml:2: cluster.leader_election.lease_duration: too long for this command",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("the error is\n%v\nbut should be\n%s", err, strings.Join(want, "\n"))
	}
	if !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Error("the error is not of the category ErrInvalidConfig")
	}
}

// TestVariablesAreUnique: no two keys take their value from one variable, and none from
// one that commands run by this program find set.
func TestVariablesAreUnique(t *testing.T) {
	t.Parallel()
	seen := []string{"TENURE_ROLE", "TENURE_TERM", "TENURE_NODE"}
	for i := range keys {
		for _, name := range keys[i].variables {
			if slices.Contains(seen, name) {
				t.Errorf("%s: the variable %s is taken", keys[i].path, name)
			}
			seen = append(seen, name)
		}
	}
}
