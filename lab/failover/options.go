package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	only, version      string
	rounds, slowRounds int
	lease, slow        time.Duration
	roles              int
	rest, settling     time.Duration // of nodes whose cost is measured, and before that
	crowd              int
	verbose, check     bool
	json, plot, from   string
	summary            string
}

// parseFlags reads the flags. It has written what is wrong to w when it returns an error.
func parseFlags(args []string, w io.Writer) (options, error) {
	o := options{settling: settlePeriod}
	flags := flag.NewFlagSet("failover", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.StringVar(&o.only, "only", "", "comma-separated scenarios; default all: "+strings.Join(scenarioNames(), ","))
	flags.IntVar(&o.rounds, "rounds", 40, "rounds of the scenarios that take milliseconds")
	flags.IntVar(&o.slowRounds, "slow-rounds", 5, "rounds of the scenarios that take a lease")
	flags.DurationVar(&o.lease, "lease", 3*time.Second, "the lease in the scenarios that take one")
	flags.DurationVar(&o.slow, "slow", 15*time.Millisecond, "name the cause of each round that takes longer, or longer than this after the lease")
	flags.IntVar(&o.roles, "roles", 1000, "roles in the scenario with many")
	flags.DurationVar(&o.rest, "rest", time.Minute, "how long the scenario at-rest counts statements")
	flags.IntVar(&o.crowd, "crowd", 0, "also count the statements of so many nodes at rest, for example 500; the default leaves it out")
	flags.BoolVar(&o.check, "check", false, "judge the bounds of README.md: print a line for each that is missed, and exit with 1")
	flags.BoolVar(&o.verbose, "v", false, "print each round")
	flags.StringVar(&o.version, "pg", "", "major version of PostgreSQL; default the newest found")
	flags.StringVar(&o.json, "json", "", "`file` to write all rounds and their facts to")
	flags.StringVar(&o.plot, "plot", "", "SVG `file` to draw the histograms to")
	flags.StringVar(&o.summary, "summary", "", "`page` of the documents to put a line for each fault into")
	flags.StringVar(&o.from, "from", "", "`file` that -json wrote, to read instead of measuring")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	err := o.validate(flags.Args())
	if err != nil {
		fmt.Fprintln(w, "failover:", err)
	}
	return o, err
}

func (o options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.rounds < 1 || o.slowRounds < 1 || o.roles < 1:
		return errors.New("-rounds, -slow-rounds and -roles must be at least 1")
	case o.slow <= 0 || o.rest <= 0:
		return errors.New("-slow and -rest must be positive")
	case o.crowd < 0:
		return errors.New("-crowd must not be negative")
	}
	return o.validateFrom()
}

// validateFrom checks the options of a run that reads results instead of measuring.
func (o options) validateFrom() error {
	switch {
	case o.from != "" && o.plot == "" && o.summary == "" && !o.check:
		return errors.New("-from needs -plot, -summary or -check")
	case o.from != "" && o.json != "":
		return errors.New("-from makes no run: leave out -json")
	}
	return nil
}
