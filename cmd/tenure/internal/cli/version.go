package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/version"
)

func newVersion(out *console.Output) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info := version.Read()
			text := fmt.Sprintf("tenure %s %s %s", info.Version, info.Go, info.Platform)
			if info.Revision != "" {
				text += " " + info.Revision
			}
			return out.Print(info, text)
		},
	}
}
