package run

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
)

// NewDemoNode is one node of the demonstration: run, until standard input ends.
// The pipe closes with the demonstration, however that ends, so no node is ever
// left behind.
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
			go func() { // ends with standard input or with the process
				defer cancel()
				_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // an error is an end, too
			}()
			return c.run(ctx, cmd)
		},
	}
	c.Register(cmd.Flags())
	return cmd
}
