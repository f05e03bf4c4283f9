package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newVersion(out *output) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			info := programVersion()
			text := fmt.Sprintf("tenure %s %s %s", info.Version, info.Go, info.Platform)
			if info.Revision != "" {
				text += " " + info.Revision
			}
			return out.print(info, text)
		},
	}
}
