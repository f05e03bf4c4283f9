package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/run"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/settings"
	"github.com/exactly-one/tenure/cmd/tenure/internal/config"
)

const configLong = `Check and show the configuration.

A configuration file is read only if --config or TENURE_CONFIG names it. A value
comes from the first of these that sets it: the flag, the environment, the file, the
default.`

const configCheckLong = `Read a configuration file, report every error on its own line, and list the settings
that this version does not use.

Exits 0 if there is no error and 2 if there is one. Without FILE, the command checks
the file that --config or TENURE_CONFIG names.`

const configShowLong = `Print the effective configuration as TOML: each value, including defaults, with its
origin in a comment. Secrets are masked.

The command takes the flags of tenure run and shows what they change.`

func newConfig(out *console.Output, root *cobra.Command) *cobra.Command {
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
	show := &cobra.Command{
		Use: "show", Short: "Print the effective configuration", Long: configShowLong, Args: console.NoArgs,
		Annotations: map[string]string{settings.WithoutConfiguration: "it shows the flags before they are completed"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return showConfiguration(cmd, out) },
	}
	show.Flags().AddFlagSet(run.New(out).Flags())
	cmd.AddCommand(check, show)
	return cmd
}

// checkRecord is the printed result of a check.
type checkRecord struct {
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
	record := checkRecord{c.Path, append([]string{}, notices...)}
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

func showConfiguration(cmd *cobra.Command, out *console.Output) error {
	c := settings.Of(cmd.Flags())
	if err := c.Load(cmd.Context()); err != nil {
		return err
	}
	var text strings.Builder
	faults := config.Show(&text, cmd.Flags(), c.File, os.LookupEnv)
	printed := strings.TrimSuffix(text.String(), "\n")
	if err := out.Print(map[string]string{"toml": printed}, strings.Split(printed, "\n")...); err != nil {
		return err
	}
	if faults != nil {
		return console.ConfigurationFaults(faults)
	}
	return nil
}
