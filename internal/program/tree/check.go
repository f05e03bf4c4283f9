package tree

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
)

const configLong = `Check and show the configuration.

A configuration file is read only if --config or TENURE_CONFIG names it. A value
comes from the first of these that sets it: the flag, the environment, the file, the
default.`

const configCheckLong = `Read a configuration file, report every error on its own line, and list the settings
that this version does not use.

Exits 0 if there is no error and 2 if there is one. Without FILE, the command checks
the file that --config or TENURE_CONFIG names.`

// NewConfig returns the command "config", which checks configuration files.
func NewConfig(out *console.Output, root *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Check and show the configuration", Long: configLong, Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	check := &cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file", Long: configCheckLong,
		Example: "  tenure config check tenure.toml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return console.Usage("give one file; %d are given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return checkConfiguration(cmd, out, root, args) },
	}
	cmd.AddCommand(check)
	return cmd
}

// Checked is the printed result of a check.
type Checked struct {
	File    string   `json:"file"`
	Notices []string `json:"notices"`
}

func checkConfiguration(cmd *cobra.Command, out *console.Output, root *cobra.Command, args []string) error {
	c := settings.Of(cmd.Flags())
	if len(args) > 0 {
		c.Path = args[0]
	}
	if err := c.Load(cmd.Context()); err != nil {
		return err
	}
	if c.Path == "" {
		return console.Usage("no file is named: use an argument, --%s or %s", settings.ConfigFlag, settings.ConfigVariable)
	}
	notices := c.File.Notices(func(flag string) bool { return anyHasFlag(root, flag) })
	record := Checked{c.Path, append([]string{}, notices...)}
	notices = append(notices, c.Path+": no errors")
	return out.Print(record, notices...)
}

// anyHasFlag reports whether a command or one of its subcommands has a flag.
func anyHasFlag(cmd *cobra.Command, name string) bool {
	if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
		return true
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Annotations[settings.WithoutConfiguration] == "" && anyHasFlag(below, name) {
			return true
		}
	}
	return false
}
