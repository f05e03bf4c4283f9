package alerts

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/alerts"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/nearest"
	"github.com/exactly-one/tenure/cmd/tenure/internal/notifiers"
)

const alertsTestLong = `Send a test notification that an alert fires, and then one that it has ended. NAME is
a notifier of the configuration file, with a target if it takes one (slack:#ops).
NAME can also be an alert of the file, which tests all of its notifiers. The command
uses no database.

Exits 0 if all notifications were acknowledged, and 1 if not.`

func newAlertsTest(out *console.Output) *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Send a test notification", Long: alertsTestLong,
		Example: "  tenure alerts test slack:#ops --config tenure.toml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage("give one notifier or alert; %d are given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return testAlert(cmd, out, args[0]) },
	}
}

// testedRecord is the printed result of a test.
type testedRecord struct {
	Address string `json:"address"`
	Sent    bool   `json:"sent"`
	Error   string `json:"error"`
}

func testAlert(cmd *cobra.Command, out *console.Output, name string) error {
	file, path, err := namedFile(cmd, nil)
	if err != nil {
		return err
	}
	set, err := notifiers.Open(file.Notifiers())
	if err != nil {
		return err
	}
	defer set.Close()
	rule, addresses := testedBy(name, file.Alerts(), set)
	if len(addresses) == 0 {
		known := set.Names()
		for _, r := range file.Alerts() {
			known = append(known, r.Name)
		}
		if meant := nearest.Of(name, known); meant != "" {
			return console.Usage("%s has no notifier and no notifying alert %q; did you mean %q?", path, name, meant)
		}
		return console.Usage("%s has no notifier and no notifying alert %q", path, name)
	}
	records, failed := []testedRecord{}, 0
	var lines []string
	for _, address := range addresses {
		record := testedRecord{Address: address, Sent: true}
		line := address + ": sent"
		if err := sendTest(cmd.Context(), set, address, rule); err != nil {
			failed++
			record.Sent, record.Error = false, console.Flatten(err.Error())
			line = address + ": not sent: " + record.Error
		}
		records, lines = append(records, record), append(lines, line)
	}
	if err := out.Print(map[string][]testedRecord{"tests": records}, lines...); err != nil {
		return err
	}
	if failed > 0 {
		return console.NotAcquired("%d of %d tests were not sent", failed, len(addresses))
	}
	return nil
}

// testedBy returns the rule to use for the test, and the addresses to notify.
func testedBy(name string, rules []alerts.Rule, set notifiers.Set) (rule alerts.Rule, addresses []string) {
	rule = alerts.Rule{Name: "tenure_test", Severity: "info"}
	if _, _, err := set.Find(name); err == nil {
		return rule, []string{name}
	}
	if i := slices.IndexFunc(rules, func(r alerts.Rule) bool { return r.Name == name }); i >= 0 {
		return rules[i], rules[i].Notify
	}
	return rule, nil
}

// sendTest sends the start and the end of an alert.
func sendTest(ctx context.Context, set notifiers.Set, address string, rule alerts.Rule) error {
	notifier, target, err := set.Find(address)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // for the operator
	alert := notifiers.Alert{
		ID: uuid.New(), Name: rule.Name, Severity: rule.Severity, StartedAt: time.Now(),
		Labels:      map[string]string{"alertname": rule.Name, "severity": rule.Severity, "test": "true"},
		Annotations: map[string]string{"summary": fmt.Sprintf("a test of %s, sent from %s", address, host)},
	}
	if err := notifier.Send(ctx, target, []notifiers.Alert{alert}); err != nil {
		return err
	}
	alert.ID, alert.EndedAt = uuid.New(), time.Now()
	return notifier.Send(ctx, target, []notifiers.Alert{alert})
}
