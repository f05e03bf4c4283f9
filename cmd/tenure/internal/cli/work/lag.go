package work

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

const processorLagLong = `Show how far processors are behind their logs, and which transaction holds the
horizon.

BEHIND is the number of events that wait. The leader counts them every 5 s, also beside a
running batch, among the next 10,000 rows of the log; a + means that more follow. At rest
it records every 15 s that none waits. HELD is how many of these
events wait for older transactions to end, anywhere in the database cluster: the
processor works correctly, and no event is lost. The transaction that holds the
horizon is named with its PID, for pg_terminate_backend, or with its name, for
ROLLBACK PREPARED. WAITING is how long the oldest event has waited. AS OF is when the
leader measured that, and "never" if no leader has. If it is old, the leader cannot read
the log, or there is no leader.`

func newProcessorLag(out *console.Output) *cobra.Command {
	return subject.Read(&cobra.Command{
		Use: "lag [PROCESSOR]...", Short: "Show how far processors are behind and why", Long: processorLagLong,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: subject.Complete,
	}, func(ctx context.Context, processors *processor.Admin, args []string) error {
		lags, err := processors.Lag(ctx, args...)
		if err != nil {
			return err
		}
		horizon, err := processors.Horizon(ctx)
		if err != nil {
			return err
		}
		return out.PrintText(record.NewLags(lags, horizon), func(page *console.Page) { fillLag(page, lags, horizon) })
	})
}

func fillLag(page *console.Page, lags []processor.Lag, horizon processor.Horizon) {
	rows := [][]string{{"PROCESSOR", "LED", "BEHIND", "HELD", "WAITING", "AS OF"}}
	for _, l := range lags {
		led, more := "no", ""
		if l.Led {
			led = "yes"
		}
		if l.Truncated {
			more = "+"
		}
		rows = append(rows, []string{
			console.Flatten(l.Name), led, console.Count(l.Behind) + more, console.Count(l.BlockedByHorizon),
			l.OldestWait.Round(time.Millisecond).String(), asOf(l),
		})
	}
	page.Table(rows, "HELD", "LED")
	if len(horizon.Holders) == 0 {
		fmt.Fprintf(page, "\nno transaction holds the horizon, which is at %d\n", horizon.Transaction)
		return
	}
	fmt.Fprintf(page, "\nthe horizon is at %d, held by %s\n", horizon.Transaction, console.Flatten(horizon.Holders[0].String()))
	if others := len(horizon.Holders) - 1; others > 0 {
		fmt.Fprintf(page, "after it: %d more: see -o json\n", others)
	}
}

// asOf returns when the lag was measured, and its age.
func asOf(l processor.Lag) string {
	if l.AsOf.IsZero() {
		return "never"
	}
	at := console.DayTime(l.AsOf)
	if l.Age < time.Second {
		return at
	}
	return fmt.Sprintf("%s, %s ago", at, l.Age.Round(time.Second))
}
