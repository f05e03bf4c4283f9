package run

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/console"
)

func TestHelpShowsEveryFlagOnce(t *testing.T) {
	cmd := New(&console.Output{})
	var out bytes.Buffer
	cmd.SetOut(&out)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	for _, match := range regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?--([\w-]+)`).FindAllStringSubmatch(out.String(), -1) {
		shown[match[1]]++
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if want := 1; !flag.Hidden && shown[flag.Name] != want {
			t.Errorf("the help shows --%s %d times, want %d", flag.Name, shown[flag.Name], want)
		}
	})
}

func TestGroupsNameFlagsOfRun(t *testing.T) {
	cmd := New(&console.Output{})
	cmd.InitDefaultHelpFlag()
	var known []string
	for _, group := range flagGroups {
		for _, name := range strings.Fields(group.names) {
			if cmd.Flags().Lookup(name) == nil || slices.Contains(known, name) {
				t.Errorf("group %q names --%s, which is no flag of run or is in another group", group.title, name)
			}
			known = append(known, name)
		}
	}
	if first := strings.Fields(flagGroups[0].names); len(first) != 10 {
		t.Errorf("%d flags come first, want 10", len(first))
	}
	var rest []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(known, flag.Name) {
			rest = append(rest, flag.Name)
		}
	})
	if want := []string{"help", "log-format", "log-level"}; !slices.Equal(rest, want) {
		t.Errorf("flags in no group: %q, want %q", rest, want)
	}
}
