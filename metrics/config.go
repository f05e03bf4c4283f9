package metrics

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/exactly-one/tenure"
)

// Config configures a collector. The zero value is ready to use. If a setting
// is invalid, registering the collector fails with the error of
// [Config.Validate].
type Config struct {
	// Prefix begins the name of every metric, as in PREFIX_leader_is_leader:
	// letters, digits and _, not starting with a digit. Default "tenure".
	Prefix string

	// MaxRoles is the maximum number of a node's roles with their own series. If there are
	// more, none has: their values are summed in one series with role="", and values that
	// cannot be summed are left out. Sums over all roles are right in either case. Default
	// 1000; negative for no own series.
	MaxRoles int
	// Roles, if set, selects roles for their own series; the others are summed. MaxRoles
	// applies to the selected roles. It is called in every scrape, from several
	// goroutines, and must not block.
	Roles func(role string) bool
}

const defaultMaxRoles = 1000

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "tenure")
	c.MaxRoles = cmp.Or(c.MaxRoles, defaultMaxRoles)
	return c
}

var prefixForm = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Validate checks the configuration. Its error matches tenure.ErrInvalidConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	if !prefixForm.MatchString(c.Prefix) {
		return fmt.Errorf("%w: the metric prefix %q is invalid: use letters, digits and _, not starting with a digit",
			tenure.ErrInvalidConfig, c.Prefix)
	}
	return nil
}
