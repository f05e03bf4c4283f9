package roles

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/postgres"
)

const historyLong = `Show the terms of roles, newest first: the leader, the beginning and end, the reason of
the end, and how long the role was vacant and silent before. With --nodes, show the status
changes of nodes and their requesters instead. With --outages, show the times in which
no node reached the database. With --incidents, show related changes as one incident,
described in a sentence. With --days, show daily totals in UTC of roles, nodes,
schedules or metrics; they remain after rows have been rolled up.

ENDED is empty while the term continues. REASON is resigned, stepped_down,
handed_over or shutdown if the leader ended the term; crashed or lease_expired if
another node detected the end; or server_changed. After a crash or an expired lease,
ENDED is when the first other node detected that the role's lock was free, or two
leases after the last heartbeat if no node was there to detect it.

VACANT is the time from the end of the previous term to the beginning of this one. SILENT is
the time from the last heartbeat of the previous leader, or from the end of its term if
it ended the term. After a freeze, SILENT is the time without a working leader. After a
crash, it also includes up to one refresh interval in which the leader was alive. Each
is "-" if it is not known: before a role's first term, and VACANT after a server change.

The latest outages of the database in that period are printed before the table of terms,
and so are transactions that kept a term from beginning.
An outage begins with the last heartbeat of any node and ends when the first session
opens afterwards. ROLES counts the roles that had no working leader. CAUSE is
server_changed if the server restarted or another one took over, else unreachable.

For a node, STATUS equals BEFORE if it opened a new session before another node marked
it dead.`

const historyExample = `  tenure history --role scheduler --since 24h
  tenure history --nodes --node api-1 -o json
  tenure history --incidents --since 1h
  tenure history --outages --since 168h
  tenure history --days roles --since 2160h
  tenure history --days metrics --name tenure_leader_losses_total`

// historyCommand shows terms, node changes and daily totals.
type historyCommand struct {
	out          *console.Output
	database     connect.DatabaseFlags
	role         flagvalue.RoleFilter
	node         string
	days, name   string
	since, until flagvalue.Moment
	limit        int
	nodes        bool
	outages      bool
	incidents    bool
}

// NewHistory returns the command "tenure history".
func NewHistory(out *console.Output) *cobra.Command {
	c := &historyCommand{out: out}
	cmd := &cobra.Command{
		Use: "history", Short: "Show the history of leaders", Long: historyLong, Example: historyExample, Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	c.role.Register(flags)
	flags.StringVar(&c.node, "node", "", "show only this `node`, by its name, its id or the beginning of its id; it may have left")
	flags.Var(&c.since, "since", "show what ended after this: a time in RFC 3339, or an age such as 24h")
	flags.Var(&c.until, "until", "show what began before this: a time in RFC 3339, or an age such as 24h")
	flags.IntVarP(&c.limit, "limit", "n", 100, "maximum `number` of lines")
	flags.BoolVar(&c.nodes, "nodes", false, "show the status changes of nodes")
	flags.BoolVar(&c.outages, "outages", false, "show the times in which no node reached the database")
	flags.BoolVar(&c.incidents, "incidents", false, "show related changes as one incident")
	flags.StringVar(&c.days, "days", "", "show daily totals of one `kind`: roles, nodes, schedules or metrics")
	flags.StringVar(&c.name, "name", "", "with --days: show only the role, schedule or metric with this `name`")
	c.database.Register(flags)
	return cmd
}

// TermHistoryRecord is the printed result.
type TermHistoryRecord struct {
	Terms []TermRecord `json:"terms"`
}

// TermRecord is a term as printed.
type TermRecord struct {
	Role     string            `json:"role"`
	Term     int64             `json:"term"`
	Node     uuid.UUID         `json:"node"`
	NodeName string            `json:"node_name"`
	Began    console.Timestamp `json:"began_at"`
	Ended    console.Timestamp `json:"ended_at"` // null while the term continues
	Reason   string            `json:"end_reason"`
	By       string            `json:"requested_by"`   // of the end
	Cause    string            `json:"end_cause"`      // as the leader recorded it
	Vacant   *float64          `json:"vacant_seconds"` // before the term; null if unknown
	Silent   *float64          `json:"silent_seconds"` // before the term; null if unknown
	Blocker  string            `json:"blocked_by"`     // transactions that kept it from beginning for longer than the fence timeout
}

// NodeHistoryRecord lists status changes of nodes as printed.
type NodeHistoryRecord struct {
	Changes []nodeChangeRecord `json:"changes"`
}

type nodeChangeRecord struct {
	At       console.Timestamp `json:"time"`
	Node     uuid.UUID         `json:"node"`
	NodeName string            `json:"node_name"`
	Status   string            `json:"status"`
	Previous string            `json:"previous"`
	By       string            `json:"requested_by"`
	Silent   bool              `json:"silent"` // it is dead and had sent no heartbeat for its trust window
}

func (c *historyCommand) run(ctx context.Context) error {
	if err := c.checkFlags(); err != nil {
		return err
	}
	role, err := c.role.Name()
	if err != nil {
		return err
	}
	now := time.Now()
	query := history.Query{Role: role, Node: c.node, Since: c.since.Before(now), Until: c.until.Before(now), Limit: c.limit}
	if !query.Until.IsZero() && query.Until.Before(query.Since) {
		return console.Usage("--until is before --since")
	}
	if c.days != "" {
		return c.printDays(ctx, now)
	}
	if c.nodes || c.outages || c.incidents {
		return c.printRegistry(ctx, query)
	}
	backend, err := c.database.Open(ctx, false)
	if err != nil {
		return err
	}
	defer backend.Close()
	terms, err := backend.History(ctx, query)
	if err != nil {
		return err
	}
	if err := c.requireNames(ctx, backend, query, len(terms)); err != nil {
		return err
	}
	outages, err := c.outagesOf(ctx, backend, query, terms)
	var before []string
	switch {
	case unreadable(err):
		before = append(before, notRead{"outages", err}.sentence())
	case err != nil:
		return err
	}
	for _, outage := range outages {
		before = append(before, outageSentence(outage, now))
	}
	before = append(before, waited(terms)...)
	before = append(before, gaveUp(terms)...)
	return c.out.PrintText(newTermHistoryRecord(terms), func(page *console.Page) { fillTerms(page, terms, before, now) })
}

// requireNames returns an error if a query found nothing and its role or node is unknown.
func (c *historyCommand) requireNames(ctx context.Context, backend connect.Backend, query history.Query, found int) error {
	if found > 0 {
		return nil
	}
	if query.Role != "" {
		if err := requireRoles(ctx, backend, tenure.NamedRole(query.Role)); err != nil {
			return err
		}
	}
	if query.Node != "" {
		return requireNode(ctx, backend, query.Node)
	}
	return nil
}

func (c *historyCommand) checkFlags() error {
	switch {
	case c.limit < 1:
		return console.Usage("--limit is %d; it must be at least 1", c.limit)
	case c.nodes && c.role.Given():
		return console.Usage("--role and --nodes exclude each other: terms have roles, node changes do not")
	}
	if err := c.checkWhole(); err != nil {
		return err
	}
	return c.checkDays()
}

// printRegistry prints explanations from the registry of nodes.
func (c *historyCommand) printRegistry(ctx context.Context, query history.Query) error {
	backend, err := c.database.Registry(ctx)
	if err != nil {
		return err
	}
	defer backend.Close()
	switch {
	case c.outages:
		return c.printOutages(ctx, backend, query)
	case c.incidents:
		return c.printIncidents(ctx, backend, query)
	}
	return c.printNodes(ctx, backend, query)
}

func newTermHistoryRecord(terms []history.Term) TermHistoryRecord {
	record := TermHistoryRecord{Terms: make([]TermRecord, len(terms))}
	for i, t := range terms {
		r := TermRecord{
			Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Began: console.Timestamp(t.Began), Ended: console.Timestamp(t.Ended),
			Reason: string(t.Reason), By: t.By, Cause: t.Cause, Blocker: t.PrecedingBlocker,
		}
		r.Vacant, _ = orDash(t.PrecedingVacancy)
		r.Silent, _ = orDash(t.PrecedingSilence)
		record.Terms[i] = r
	}
	return record
}

// fillTerms shows terms after the sentences on outages of the same time and on terms
// delayed by transactions.
func fillTerms(page *console.Page, terms []history.Term, before []string, now time.Time) {
	for _, sentence := range before {
		page.Paragraph(sentence)
	}
	if len(before) > 0 {
		page.Line("")
	}
	rows := [][]string{{"ROLE", "TERM", "NODE", "BEGAN", "ENDED", "LASTED", "REASON", "BY", "VACANT", "SILENT"}}
	for _, t := range terms {
		_, vacant := orDash(t.PrecedingVacancy)
		_, silent := orDash(t.PrecedingSilence)
		lasted := now.Sub(t.Began)
		if !t.Ended.IsZero() {
			lasted = t.Ended.Sub(t.Began)
		}
		_, led := orDash(lasted.Round(time.Millisecond)) // negative if one of the times was false
		rows = append(rows, []string{
			t.Role, strconv.FormatInt(t.Term, 10), t.NodeName, console.ShortTime(t.Began), console.ShortTime(t.Ended),
			led, console.OrDash(string(t.Reason)), console.OrDash(console.Flatten(t.By)), vacant, silent,
		})
	}
	page.Table(rows, "TERM", "BY", "ENDED", "LASTED", "SILENT", "VACANT")
}

// orDash returns a duration in seconds and as text, or nil and a dash if it is
// negative.
func orDash(d time.Duration) (seconds *float64, text string) {
	if d < 0 {
		return nil, "-"
	}
	value := d.Seconds()
	return &value, d.Round(100 * time.Microsecond).String()
}

func (c *historyCommand) printNodes(ctx context.Context, backend *postgres.Backend, query history.Query) error {
	changes, err := backend.NodeHistory(ctx, query)
	if err != nil {
		return err
	}
	if err := c.requireNames(ctx, backend, query, len(changes)); err != nil {
		return err
	}
	record := NodeHistoryRecord{Changes: make([]nodeChangeRecord, len(changes))}
	rows := [][]string{{"AT", "NODE", "ID", "STATUS", "BEFORE", "BY"}}
	for i, n := range changes {
		record.Changes[i] = nodeChangeRecord{
			At: console.Timestamp(n.At), Node: n.Node, NodeName: n.NodeName, Status: n.Status, Previous: n.Previous, By: n.By, Silent: n.Silent,
		}
		rows = append(rows, []string{console.ShortTime(n.At), n.NodeName, n.Node.String(), n.Status, console.OrDash(n.Previous), console.OrDash(console.Flatten(n.By))})
	}
	return c.out.PrintTable(record, rows, "ID", "BEFORE", "BY")
}
