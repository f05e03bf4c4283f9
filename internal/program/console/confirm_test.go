package console

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Only yes counts as a confirmation.
func TestConfirmAcceptsYesOnly(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		var shown strings.Builder
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetIn(strings.NewReader(answer))
		agreed, err := Confirm(cmd, &Output{Format: FormatText, Writer: &shown}, "Move 3 roles?")
		if agreed != want || err != nil || shown.String() != "Move 3 roles? [y/N] " {
			t.Errorf("%q: %v, %v, %q", answer, agreed, err, shown.String())
		}
	}
}
