package settings

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
)

// UnknownMetrics is the flag of commands with a check of alerts.
type UnknownMetrics struct{ allowed bool }

// Register adds the flag.
func (u *UnknownMetrics) Register(flags *pflag.FlagSet) {
	flags.BoolVar(&u.allowed, "allow-unknown-metrics", false, "only warn of alerts on metrics with a prefix of this program that no node has")
}

// Refuse returns an error if alerts of a file have unknown metrics.
func (u *UnknownMetrics) Refuse(file *config.File) error {
	if file == nil || u.allowed {
		return nil
	}
	if unknown := file.UnknownMetrics(); len(unknown) > 0 {
		return console.Usage("%s; such an alert never fires: with --allow-unknown-metrics that is only a warning", strings.Join(unknown, "; "))
	}
	return nil
}
