package roles

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

// RetiredRecord is the printed result for a pattern.
type RetiredRecord struct {
	DryRun  bool     `json:"dry_run"`
	Retired []string `json:"retired"` // with dry_run: that would be
	Led     []string `json:"led"`     // match too, and stay
}

// retireMatching retires the roles that match the pattern.
func (c *retireCommand) retireMatching(cmd *cobra.Command, backend *postgres.Backend) error {
	matched, err := c.matching(cmd.Context(), backend)
	if err != nil {
		return err
	}
	if matched.DryRun || len(matched.Retired) == 0 {
		return c.print(matched)
	}
	if !c.yes {
		if !console.Confirmable(cmd, c.out) {
			return console.Usage("cannot ask for confirmation here: use --yes to proceed")
		}
		question := fmt.Sprintf("Retire %s?", strings.Join(matched.Retired, ", "))
		if agreed, err := console.Confirm(cmd, c.out, question); err != nil || !agreed {
			return err
		}
	}
	found := matched.Retired
	matched.Retired = []string{}
	for _, role := range found {
		err := backend.Retire(cmd.Context(), role, connect.WhoAsks())
		switch {
		case errors.Is(err, dberr.ErrHasLeader): // since it was listed
			matched.Led = append(matched.Led, role)
		case err != nil:
			return errors.Join(err, c.print(matched))
		default:
			matched.Retired = append(matched.Retired, role)
		}
	}
	return c.print(matched)
}

// matching lists the roles that match the pattern and are not retired.
func (c *retireCommand) matching(ctx context.Context, backend *postgres.Backend) (RetiredRecord, error) {
	matched := RetiredRecord{DryRun: c.dryRun, Retired: []string{}, Led: []string{}}
	known, err := backend.Holders(ctx)
	pattern := compile(c.match)
	for _, holder := range known {
		switch {
		case !pattern.MatchString(holder.Role):
		case holder.Leader != nil:
			matched.Led = append(matched.Led, holder.Role)
		default:
			matched.Retired = append(matched.Retired, holder.Role)
		}
	}
	return matched, err
}

// compile returns the expression for a pattern with * and ?.
func compile(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(quoted)
	return regexp.MustCompile(`(?s)^` + quoted + `$`)
}

func (c *retireCommand) print(matched RetiredRecord) error {
	done := "is retired"
	if matched.DryRun {
		done = "would be retired"
	}
	lines := []string{}
	for _, role := range matched.Retired {
		lines = append(lines, role+" "+done)
	}
	for _, role := range matched.Led {
		lines = append(lines, role+" has a leader and stays")
	}
	if len(lines) == 0 {
		lines = append(lines, "no role matches "+c.match)
	}
	return c.out.Print(matched, lines...)
}
