package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/config"
)

// configVariable names the configuration file where --config does not.
const configVariable = "TENURE_CONFIG"

// configFlag is the flag that names the configuration file.
const configFlag = "config"

// configuration is the value of --config: the file's name, and, once the file has
// been applied to a command, what it says. No file is read that nobody named: on
// a machine where one lies in a usual place, a command would do another thing than
// its line says.
type configuration struct {
	path    string
	command string       // the command that it was applied to: "run", "cron run"
	file    *config.File // nil if none is named
}

// Set implements pflag.Value.
func (c *configuration) Set(path string) error {
	if path == "" {
		return usage("it is empty")
	}
	c.path = path
	return nil
}

func (c *configuration) String() string { return c.path }

// Type implements pflag.Value.
func (c *configuration) Type() string { return "file" }

// register adds the flag.
func (c *configuration) register(flags *pflag.FlagSet) {
	flags.Var(c, configFlag, "configuration file, see tenure config; default "+configVariable+", else none")
}

// configurationOf returns the configuration of a command whose flags are parsed.
func configurationOf(flags *pflag.FlagSet) *configuration {
	c, ok := flags.Lookup(configFlag).Value.(*configuration)
	if !ok {
		panic("--" + configFlag + " is another flag")
	}
	return c
}

// load reads the file, if one is named. Its errors are told line by line.
func (c *configuration) load() error {
	if c.path == "" {
		c.path = os.Getenv(configVariable)
	}
	if c.path == "" {
		return nil
	}
	file, err := config.Load(c.path, os.LookupEnv)
	if err != nil {
		return configurationFaults(err)
	}
	c.file = file
	return nil
}

// withoutConfiguration is the annotation of a command that sees to the
// configuration itself.
const withoutConfiguration = "tenure/without-configuration"

// configure gives a command's flags the values that its command line leaves out.
// Commands that need no database need no configuration either, and hidden ones are
// started by this program, which tells them everything.
func configure(cmd *cobra.Command) error {
	_, without := cmd.Annotations[withoutConfiguration]
	if without || cmd.Hidden || cmd.Flags().Lookup("dsn") == nil {
		return nil
	}
	c := configurationOf(cmd.Flags())
	c.command = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if err := c.load(); err != nil {
		return err
	}
	if err := config.Apply(c.command, cmd.Flags(), c.file, os.LookupEnv); err != nil {
		return configurationFaults(err)
	}
	return nil
}
