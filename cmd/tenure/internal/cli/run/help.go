package run

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups are the flags of tenure run in the order of its help. Other flags come last.
var flagGroups = []struct {
	title string
	names string
}{
	{"Common flags", `
		role dsn name once restart grace health-command no-leader-exit listen lease`},
	{"What to run", `
		key key1 key2 slots slots-per-node max-restarts health-every pass-dsn no-auto-reacquire no-leader require require-node-role
		prefer priority take-over-after`},
	{"Cluster", `
		address http-port grpc-port label capability node-role cluster-name unique-names min-nodes
		startup-timeout mark-dead-nodes dead-threshold`},
	{"Timing", `
		refresh margin check-interval heartbeat-interval health-interval settle failover-wait synchronous-failover
		fence-timeout lock-timeout reconnect-grace retry-base retry-max stop-timeout drain-timeout
		force-after drain-poll-interval next-within`},
	{"HTTP", `
		host token-file tls-cert tls-key metrics-prefix`},
	{"Database", `
		local agent password-command schema prefix manual-migrations`},
	{"Other", ``},
}

// usage prints the usage of a command with its flags in groups.
func usage(cmd *cobra.Command) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	rest.AddFlagSet(cmd.NonInheritedFlags())
	for _, group := range flagGroups {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.SortFlags = false
		for _, name := range strings.Fields(group.names) {
			if flag := rest.Lookup(name); flag != nil {
				flags.AddFlag(flag)
			}
		}
		if group.names == "" {
			rest.VisitAll(func(flag *pflag.Flag) {
				if !grouped(flag.Name) {
					flags.AddFlag(flag)
				}
			})
		}
		if flags.HasAvailableFlags() {
			fmt.Fprintf(&text, "\n%s:\n%s", group.title, flags.FlagUsages())
		}
	}
	fmt.Fprintf(&text, "\nGlobal flags:\n%s", cmd.InheritedFlags().FlagUsages())
	_, err := fmt.Fprint(cmd.OutOrStdout(), text.String())
	return err
}

// grouped reports whether a group names the flag.
func grouped(name string) bool {
	for _, group := range flagGroups {
		for _, known := range strings.Fields(group.names) {
			if known == name {
				return true
			}
		}
	}
	return false
}
