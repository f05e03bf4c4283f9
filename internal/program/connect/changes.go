package connect

import (
	"os"
	"os/user"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/console"
)

// byFlag is the flag for the requester of a change.
type byFlag struct{ name string }

func (f *byFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "by", "", "requester to record with the change (default user@host)")
}

func (f *byFlag) check(flags *pflag.FlagSet) error {
	if flags.Changed("by") && f.name == "" {
		return console.Usage("--by is empty")
	}
	return nil
}

// requester returns the requester to record.
func (f *byFlag) requester(flags *pflag.FlagSet) string {
	if !flags.Changed("by") {
		return WhoAsks()
	}
	return f.name
}

// CheckCount validates --count.
func CheckCount(n int) error {
	if n < 1 {
		return console.Usage("--count is %d; it must be at least 1", n)
	}
	return nil
}

// maxRows is the maximum number of rows of a request.
const maxRows = 100_000

// WhoAsks returns the current user as a requester.
func WhoAsks() string {
	host, _ := os.Hostname() // without the host, the user's name has to suffice
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	return name + "@" + host
}
