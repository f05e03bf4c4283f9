package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/config"
)

const configLong = `Check and show the configuration.

A configuration file is read if --config or TENURE_CONFIG names it; there is no
other place where one is looked for. A value comes from the first of these that
has one: the flag, the environment, the file, the default.`

const configCheckLong = `Read a configuration file, tell every error, each on its line, and name what this
version does not use.

Exits 0 if there is no error and 2 if there is one. The file is the argument, else
that of --config, else that of TENURE_CONFIG.`

const configShowLong = `Print the configuration as it takes effect, as TOML: each value with its origin in
a comment, defaults too. Secrets are masked.

It takes the flags of tenure run, and shows what they change.`

func newConfig(out *output, root *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Check and show the configuration", Long: configLong, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	check := &cobra.Command{
		Use: "check [FILE]", Short: "Tell what is wrong with a configuration file", Long: configCheckLong,
		Example: "  tenure config check tenure.toml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("give one file; %d are given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return checkConfiguration(cmd, out, root, args) },
	}
	show := &cobra.Command{
		Use: "show", Short: "Print the configuration as it takes effect", Long: configShowLong, Args: noArgs,
		Annotations: map[string]string{withoutConfiguration: "it shows the flags before they are completed"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return showConfiguration(cmd, out) },
	}
	show.Flags().AddFlagSet(newRun(out).Flags())
	cmd.AddCommand(check, show)
	return cmd
}

// checkRecord is the result of a check as it is printed.
type checkRecord struct {
	File    string   `json:"file"`
	Notices []string `json:"notices"`
}

func checkConfiguration(cmd *cobra.Command, out *output, root *cobra.Command, args []string) error {
	c := configurationOf(cmd.Flags())
	if len(args) > 0 {
		c.path = args[0]
	}
	if err := c.load(); err != nil {
		return err
	}
	if c.path == "" {
		return usage("no file is named: give one as the argument, or by --%s or %s", configFlag, configVariable)
	}
	notices := c.file.Notices(func(flag string) bool { return anyHasFlag(root, flag) })
	record := checkRecord{c.path, append([]string{}, notices...)}
	notices = append(notices, c.path+": no errors")
	return out.print(record, notices...)
}

// anyHasFlag tells whether a command or one below it has a flag.
func anyHasFlag(cmd *cobra.Command, name string) bool {
	if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
		return true
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Annotations[withoutConfiguration] == "" && anyHasFlag(below, name) {
			return true
		}
	}
	return false
}

func showConfiguration(cmd *cobra.Command, out *output) error {
	c := configurationOf(cmd.Flags())
	if err := c.load(); err != nil {
		return err
	}
	var text strings.Builder
	faults := config.Show(&text, cmd.Flags(), c.file, os.LookupEnv)
	printed := strings.TrimSuffix(text.String(), "\n")
	if err := out.print(map[string]string{"toml": printed}, strings.Split(printed, "\n")...); err != nil {
		return err
	}
	if faults != nil {
		return configurationFaults(faults)
	}
	return nil
}
