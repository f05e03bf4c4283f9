package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/run"
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/internal/program/tree"
)

const configShowLong = `Print the effective configuration as TOML: each value, including defaults, with its
origin in a comment. Secrets are masked.

The command takes the flags of tenure run and shows what they change.`

func newConfig(out *console.Output) *cobra.Command {
	cmd := tree.NewConfig(out)
	check := cmd.Commands()[0]
	alone := check.RunE
	check.RunE = func(cmd *cobra.Command, args []string) error {
		if path, err := findServer(); err == nil { // it checks conditions too
			return become(path, append([]string{"tenure"}, os.Args[1:]...))
		}
		return alone(cmd, args)
	}
	show := &cobra.Command{
		Use: "show", Short: "Print the effective configuration", Long: configShowLong, Args: console.NoArgs,
		Annotations: map[string]string{settings.WithoutConfiguration: "it shows the flags before they are completed"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return showConfiguration(cmd, out) },
	}
	show.Flags().AddFlagSet(run.New(out).Flags())
	cmd.AddCommand(show)
	return cmd
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
