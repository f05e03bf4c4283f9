package metrics

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/exactly-one/tenure"
)

// Config configures a collector. The zero value is ready to use. If something
// in it is wrong, registering the collector fails with the error of
// [Config.Validate].
type Config struct {
	// Prefix begins the name of every metric, as in PREFIX_leader_is_leader:
	// letters, digits and _, no digit first. Default "tenure".
	Prefix string

	// MaxRoles is up to how many roles of a node have series of their own.
	// Beyond that none has: their figures are summed up in one series with
	// role="", and those that cannot be summed up are left out. So sums over all
	// roles are right in either case. Default 1000; a negative number is for
	// never.
	MaxRoles int
	// Roles, if set, says which roles may have series of their own; the others
	// are summed up. MaxRoles bounds the number of those chosen. It is called in
	// every scrape, from several goroutines, and must not block.
	Roles func(role string) bool
}

const defaultMaxRoles = 1000

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "tenure")
	c.MaxRoles = cmp.Or(c.MaxRoles, defaultMaxRoles)
	return c
}

var prefixForm = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Validate returns what is wrong with the configuration, as an error that matches
// tenure.ErrInvalidConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	if !prefixForm.MatchString(c.Prefix) {
		return fmt.Errorf("%w: the names of metrics cannot begin with %q: use letters, digits and _, and no digit first",
			tenure.ErrInvalidConfig, c.Prefix)
	}
	return nil
}
