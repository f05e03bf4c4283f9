// Package settings reads the values of flags from the configuration file and
// the environment.
package settings

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
)

// ConfigVariable names the configuration file if --config does not.
const ConfigVariable = "TENURE_CONFIG"

// ConfigFlag is the flag for the configuration file.
const ConfigFlag = "config"

// Configuration is the value of --config: the file's name and, once applied to a command,
// its content. Only a named file is read: a file at a default path could change a command
// without a trace on its command line.
type Configuration struct {
	Path    string
	command string       // the command it was applied to: "run", "cron run"
	File    *config.File // nil if no file is named
}

// Set implements pflag.Value.
func (c *Configuration) Set(path string) error {
	if path == "" {
		return console.Usage("it is empty")
	}
	c.Path = path
	return nil
}

func (c *Configuration) String() string { return c.Path }

// Type implements pflag.Value.
func (c *Configuration) Type() string { return "file" }

// Register adds the flag.
func (c *Configuration) Register(flags *pflag.FlagSet) {
	flags.Var(c, ConfigFlag, "configuration file, see tenure config; default "+ConfigVariable+", else none")
}

// Of returns the configuration of a command with parsed flags.
func Of(flags *pflag.FlagSet) *Configuration {
	c, ok := flags.Lookup(ConfigFlag).Value.(*Configuration)
	if !ok {
		panic("--" + ConfigFlag + " is another flag")
	}
	return c
}

// Load reads the file, if one is named, until ctx ends. Its errors are reported line by line.
func (c *Configuration) Load(ctx context.Context) error {
	if c.Path == "" {
		c.Path = os.Getenv(ConfigVariable)
	}
	if c.Path == "" {
		return nil
	}
	file, err := load(ctx, c.Path)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return console.ConfigurationFaults(err)
	}
	c.File = file
	return nil
}

// LoadNamed is Load for a command that needs a file: that of its arguments, if there is one.
func (c *Configuration) LoadNamed(ctx context.Context, args []string) error {
	if len(args) > 0 {
		c.Path = args[0]
	}
	if err := c.Load(ctx); err != nil {
		return err
	}
	if c.Path == "" {
		return console.Usage("no file is named: use an argument, --%s or %s", ConfigFlag, ConfigVariable)
	}
	return nil
}

// load reads a file until ctx ends. A pipe without a writer, or a silent file server, can
// block a read forever, and nothing interrupts it.
func load(ctx context.Context, path string) (*config.File, error) {
	type result struct {
		file *config.File
		err  error
	}
	read := make(chan result, 1)
	go func() { // nothing waits for it after ctx has ended
		file, err := config.Load(path, os.LookupEnv)
		read <- result{file, err}
	}()
	select {
	case r := <-read:
		return r.file, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// WithoutConfiguration is the annotation of a command with its own reading of the
// configuration.
const WithoutConfiguration = "tenure/without-configuration"

// Configure sets a command's flags if its command line omits them. Commands without a
// database need no configuration. Hidden commands are started by this program with all
// necessary flags.
func Configure(cmd *cobra.Command) error {
	_, without := cmd.Annotations[WithoutConfiguration]
	if without || cmd.Hidden || cmd.Flags().Lookup("dsn") == nil {
		return nil
	}
	c := Of(cmd.Flags())
	c.command = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if err := c.Load(cmd.Context()); err != nil {
		return err
	}
	if err := config.Apply(c.command, cmd.Flags(), c.File, os.LookupEnv); err != nil {
		return console.ConfigurationFaults(err)
	}
	return nil
}
