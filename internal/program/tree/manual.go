package tree

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/exactly-one/tenure/internal/program/console"
)

const manualLong = `Write the manual pages of all commands to a directory, which is created if it does
not exist: tenure.1, tenure-run.1, ... The pages of the same version are identical;
SOURCE_DATE_EPOCH sets their date.`

// NewManual returns the command that writes the manual pages of a program.
func NewManual(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "manual DIRECTORY",
		Short:   "Write manual pages",
		Long:    manualLong,
		Example: "  tenure manual /usr/local/share/man/man1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage("name one directory for the pages")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return writeManual(root, args[0]) },
	}
}

func writeManual(root *cobra.Command, directory string) error {
	date, err := manualDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return console.Usage("%w", err)
	}
	// The note on the page's generation would contain today's date.
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "Tenure " + root.Version, Manual: "Tenure", Date: &date}
	if err := doc.GenManTree(root, header, directory); err != nil {
		return console.Usage("%w", err)
	}
	return nil
}

// manualDate returns the date of the pages. Without SOURCE_DATE_EPOCH, it is fixed: the
// pages must not change.
func manualDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, console.Usage("SOURCE_DATE_EPOCH is %q; it must be seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
