package run

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
)

// NewDemoNode returns the command of a demonstration's node: run, until
// standard input ends. The pipe closes however the demonstration ends, so no
// node is left behind.
func NewDemoNode(out *console.Output) *cobra.Command {
	c := &runCommand{out: out}
	cmd := &cobra.Command{
		Use:    "demo-node",
		Short:  "A node of the demonstration",
		Hidden: true,
		Args:   console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() { // exits with standard input or the process
				defer cancel()
				_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // an error also ends it
			}()
			return c.run(ctx, cmd)
		},
	}
	c.Register(cmd.Flags())
	return cmd
}
