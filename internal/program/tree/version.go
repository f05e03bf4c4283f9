package tree

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/version"
)

// NewVersion returns the command "version".
func NewVersion(out *console.Output) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := version.Read()
			text := fmt.Sprintf("%s %s %s %s", cmd.Root().Name(), info.Version, info.Go, info.Platform)
			if info.Revision != "" {
				text += " " + info.Revision
			}
			return out.Print(info, text)
		},
	}
}
