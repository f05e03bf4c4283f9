package cron

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
)

const cronNextLong = `Print the next ticks of a schedule, by the database's clock. With --expr, print those
of an expression, without a database. Ticks are printed in RFC 3339, in the
schedule's time zone and without jitter. A paused schedule has none.`

// cronNextCommand prints future ticks.
type cronNextCommand struct {
	out        *console.Output
	database   connect.DatabaseFlags
	expression string
	zone       string
	from       string
	count      flagvalue.Number
}

func newCronNext(out *console.Output) *cobra.Command {
	c := &cronNextCommand{out: out, count: flagvalue.Number{Value: 5, Most: maxTicks}}
	cmd := &cobra.Command{
		Use:   "next SCHEDULE | --expr EXPRESSION",
		Short: "Print the next ticks of a schedule or of an expression",
		Long:  cronNextLong,
		Example: "  tenure cron next backup -n 10\n" +
			"  tenure cron next --expr '30 2 * * *' --tz America/New_York --from 2026-03-07T00:00:00-05:00 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("expr") {
				return c.parse()
			}
			return c.read(cmd, args[0])
		},
		ValidArgsFunction: subject.Complete,
	}
	flags := cmd.Flags()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if flags.Changed("expr") {
			if len(args) > 0 {
				return console.Usage("name a schedule or use --expr, not both")
			}
			return connect.CheckCount(c.count.Value)
		}
		for _, name := range []string{"tz", "from"} {
			if flags.Changed(name) {
				return console.Usage("--%s requires --expr", name)
			}
		}
		if err := subject.One(cmd, args); err != nil {
			return err
		}
		return connect.CheckCount(c.count.Value)
	}
	c.database.Register(flags)
	flags.StringVar(&c.expression, "expr", "", "a cron `expression`, instead of a schedule")
	flags.StringVar(&c.zone, "tz", "UTC", "with --expr: the time `zone`, by its name in the IANA database")
	flags.StringVar(&c.from, "from", "", "with --expr: print ticks after this `time`, in RFC 3339; default now")
	flags.VarP(&c.count, "count", "n", "number of ticks")
	return cmd
}

// ticksRecord lists the ticks of an expression as printed.
type ticksRecord struct {
	Next []string `json:"next"`
}

// parse prints the ticks of an expression.
func (c *cronNextCommand) parse() error {
	zone, err := cron.LoadZone(c.zone)
	if err != nil {
		return err
	}
	expression, err := cron.Parse(c.expression, zone)
	if err != nil {
		return err
	}
	from := time.Now()
	if c.from != "" {
		if from, err = time.Parse(time.RFC3339, c.from); err != nil {
			return console.Usage("--from is %q; it must be a time in RFC 3339, like 2026-03-07T12:00:00-05:00", c.from)
		}
	}
	var ticks []time.Time
	for tick := expression.Next(from); len(ticks) < c.count.Value && !tick.IsZero(); tick = expression.Next(tick) {
		ticks = append(ticks, tick)
	}
	all := record.NewScheduleTicks("", ticks).Next
	return c.print(ticksRecord{all}, all)
}

// read prints the ticks of a schedule.
func (c *cronNextCommand) read(cmd *cobra.Command, name string) error {
	return subject.With(cmd.Context(), &c.database, func(schedules *cron.Admin) error {
		ticks, err := schedules.Next(cmd.Context(), name, c.count.Value)
		if err != nil {
			return err
		}
		all := record.NewScheduleTicks(name, ticks)
		return c.print(all, all.Next)
	})
}

func (c *cronNextCommand) print(value any, ticks []string) error {
	return c.out.PrintText(value, func(page *console.Page) {
		if len(ticks) == 0 {
			page.Paragraph("none: the schedule is paused")
			return
		}
		fmt.Fprintln(page, strings.Join(ticks, "\n"))
	})
}

// maxTicks is the maximum number of ticks of a request.
const maxTicks = 10_000
