package serve

import (
	"bytes"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
)

// hashPassword runs the command with an input.
func hashPassword(t *testing.T, input string, args ...string) (printed string, err error) {
	t.Helper()
	var text bytes.Buffer
	cmd := newPassword(&console.Output{Format: console.FormatText, Writer: &text})
	cmd.SetIn(strings.NewReader(input))
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return text.String(), err
}

// TestPasswordCommandPrintsAUser: what the command prints is a user of the configuration
// file whose hash matches the first line of the input, without its end.
func TestPasswordCommandPrintsAUser(t *testing.T) {
	t.Parallel()
	const password = "correct horse battery"
	for _, c := range []struct {
		input    string
		args     []string
		name     string
		operator bool
	}{
		{password + "\n", []string{"anna", "--access", "operator"}, "anna", true},
		{password + "\r\nmore\n", []string{"bert"}, "bert", false},
		{password, []string{`"${HOME}\`}, `"${HOME}\`, false},
	} {
		printed, err := hashPassword(t, c.input, c.args...)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		file, err := config.Parse("tenure.toml", []byte(printed), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Errorf("%q is printed: %v", printed, err)
			continue
		}
		users := file.Users()
		if len(users) != 1 || users[0].Name != c.name || users[0].Operator != c.operator {
			t.Errorf("%q: %+v", c.args, users)
			continue
		}
		hash, err := passwordhash.Parse(users[0].PasswordHash)
		if err != nil || !passwordhash.NewChecker().Check(hash, password) {
			t.Errorf("%q: the hash does not match: %v", c.args, err)
		}
		if strings.Contains(printed, password) {
			t.Errorf("the password is printed: %q", printed)
		}
	}
}

// TestPasswordCommandRefusesWeakInput: short passwords, huge ones, and names or access that
// cannot be are refused without being repeated.
func TestPasswordCommandRefusesWeakInput(t *testing.T) {
	t.Parallel()
	for input, args := range map[string][]string{
		"too-short\n": {"anna"}, "": {"anna"}, strings.Repeat("x", maxPassword+1): {"anna"}, "correct horse battery\n": {"anna", "--access", "admin"},
		"correct horse battery ": {"an\nna"}, "correct horse": {}, "correct horse battery": {"anna", "ben"},
	} {
		if printed, err := hashPassword(t, input, args...); err == nil || printed != "" || strings.Contains(err.Error(), "too-short") {
			t.Errorf("%.30q for %q: %q, %v", input, args, printed, err)
		}
	}
}
