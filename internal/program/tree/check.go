package tree

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/settings"
)

const configLong = `Check and show the configuration.

A configuration file is read only if --config or TENURE_CONFIG names it. A value
comes from the first of these that sets it: the flag, the environment, the file, the
default.`

const configCheckLong = `Read a configuration file, report every error on its own line, and list what is
doubtful. An alert on a metric that no node has is an error. Conditions and templates of
alerts are checked where the program tenure-server is installed.

Exits 0 if there is no error and 2 if there is one. Without FILE, the command checks
the file that --config or TENURE_CONFIG names.`

// NewConfig returns the command "config", which checks configuration files.
func NewConfig(out *console.Output) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Check and show the configuration", Long: configLong, Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var allowUnknown bool
	check := &cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file", Long: configCheckLong,
		Example: "  tenure config check tenure.toml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return console.Usage("give one file; %d are given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return checkConfiguration(cmd, out, args, allowUnknown) },
	}
	check.Flags().BoolVar(&allowUnknown, "allow-unknown-metrics", false, "only warn of alerts on metrics with a prefix of this program that no node has")
	cmd.AddCommand(check)
	return cmd
}

func checkConfiguration(cmd *cobra.Command, out *console.Output, args []string, allowUnknown bool) error {
	c := settings.Of(cmd.Flags())
	if err := c.LoadNamed(cmd.Context(), args); err != nil {
		return err
	}
	if unknown := c.File.UnknownMetrics(); len(unknown) > 0 && !allowUnknown {
		return console.Usage("%s; such an alert never fires: with --allow-unknown-metrics that is only a warning", strings.Join(unknown, "; "))
	}
	notices := c.File.Notices()
	checked := record.Checked{File: c.Path, Notices: append([]string{}, notices...)}
	notices = append(notices, c.Path+": no errors")
	return out.Print(checked, notices...)
}
