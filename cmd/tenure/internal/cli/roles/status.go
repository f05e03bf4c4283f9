// Package roles implements the commands on roles, their leaders and their
// history.
package roles

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/lease"
)

const statusLong = `Show the leader of each role, from the records of the elections and from the server's
lock table. Leases have no locks: for them only the records are shown.

The first line of text output is a verdict: which roles have no leader and for how long,
and which nodes are dead. If no role is selected, it also names schedules that fail or
are overdue, processors that failed, fail, have dead letters that no operator skipped or
dismissed, or have no leader while events wait, and alerts that fire and are not
silenced. The next line names an outage of the database that ended within the last hour:
see tenure history --outages. What cannot be read is named with the cause.

Without --role, --key or --key1 and --key2 it shows all roles that ever had a leader.
A role given by key is shown even if Tenure does not know it, with every program that
holds the lock. STATE is "led"; "waits" for a node that has the lock but whose term
has not begun; "foreign" for a program other than Tenure; "vacant"; or "at rest", if
the last command with --once ended with exit code 0 and the next one is not overdue by
its --next-within. SINCE is then when the last term ended. If the last leader recorded
why it gave a role up, that is shown with the time of its next attempt. The exit code
is 0 even if there is no leader. Transactions that keep a term from beginning are named.

With --watch it shows the roles again after every change, until a signal. On a terminal
it redraws them in place, with the time of the read. While the database does not answer,
it shows the last state with its age. With -o json it prints one line per change.

The command only reads. Details of other users' sessions that the database user may
not see are shown as "-".`

// statusCommand shows the holders of roles.
type statusCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	roles    flagvalue.RoleFlags
	watch    bool
	work     *workReader // nil if only some roles are shown, or the database has leases
}

// NewStatus returns the command "tenure status".
func NewStatus(out *console.Output) *cobra.Command {
	c := &statusCommand{out: out}
	cmd := &cobra.Command{
		Use:     "status [--role NAME]...",
		Short:   "Show the leader of each role",
		Long:    statusLong,
		Example: "  tenure status --role billing\n  tenure status --watch",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.roles.Register(cmd.Flags(), "show")
	c.database.Register(cmd.Flags())
	cmd.Flags().BoolVar(&c.watch, "watch", false, "show the roles again after every change, until a signal")
	return cmd
}

// StatusRecord is the printed result.
type StatusRecord struct {
	Well     bool            `json:"well"`    // there are no problems
	Summary  string          `json:"summary"` // the first line of text output
	Problems []problemRecord `json:"problems"`
	Roles    []roleRecord    `json:"roles"`
}

type roleRecord struct {
	Role     string          `json:"role"`
	State    string          `json:"state"`  // led, waits, foreign, vacant, or at rest
	Key      *string         `json:"key"`    // advisory lock key: N or A:B; null for leases
	Leader   *leaderRecord   `json:"leader"` // null if there is no leader
	Sessions []sessionRecord `json:"sessions"`
	Blockers []BlockerRecord `json:"blockers"` // in the way of the waiting node's term
	Last     *lastTermRecord `json:"last"`     // the end of the last term, if no node leads; else null
}

// lastTermRecord is how the last term of a role without a leader ended.
type lastTermRecord struct {
	Node   uuid.UUID         `json:"node"`
	Name   string            `json:"node_name"`
	Ended  console.Timestamp `json:"ended_at"`
	Reason string            `json:"end_reason"`
	Cause  string            `json:"end_cause"` // as the leader recorded it
	Next   console.Timestamp `json:"next_by"`   // when the next term is due, if recorded by the leader; else null
}

// BlockerRecord is a transaction with a lock on the row of a role.
type BlockerRecord struct {
	PID         int32             `json:"pid"`      // 0 for a prepared transaction
	Prepared    string            `json:"prepared"` // identifier of a prepared transaction, or empty
	User        string            `json:"user"`
	Application string            `json:"application"`
	Since       console.Timestamp `json:"since"`      // null if the user may not see it
	Terminable  bool              `json:"terminable"` // the waiting node terminates it after its fence timeout
	Advice      string            `json:"advice"`     // SQL to end it, or to let nodes end it; empty if terminable
}

// sessionRecord is a server session with a role's lock. Fields hidden from the user are
// empty or null.
type sessionRecord struct {
	State       string            `json:"state"`
	Node        *uuid.UUID        `json:"node"` // null if the session is not of a node
	NodeName    string            `json:"node_name"`
	PID         int32             `json:"pid"`
	User        string            `json:"user"`
	Client      string            `json:"client"`
	Application string            `json:"application"`
	StartedAt   console.Timestamp `json:"started_at"`
}

// The states of a server session with a lock, and of a role without one.
const (
	StateLed     = "led"
	stateWaits   = "waits" // the term has not begun
	StateForeign = "foreign"
	stateVacant  = "vacant"
	StateAtRest  = "at rest" // its work is completed
)

func (c *statusCommand) run(ctx context.Context) error {
	roles, err := c.roles.Roles()
	if err != nil {
		return err
	}
	backend, err := c.database.Open(ctx, false)
	if err != nil {
		return err
	}
	defer backend.Close()
	if len(roles) == 0 {
		work, err := OpenWork(ctx, &c.database, backend, "status")
		if err != nil {
			return err
		}
		defer work.Close()
		if work != nil {
			c.work = work.reader
		}
	}
	if c.watch {
		return c.follow(ctx, backend, roles)
	}
	shown, err := c.read(ctx, backend, roles)
	if err == nil && len(shown.summary.vacant) > 0 {
		err = requireRoles(ctx, backend, roles...)
	}
	if err != nil {
		return err
	}
	return c.out.PrintText(shown.record, func(page *console.Page) {
		shown.summary.fill(page)
		shown.fillRoles(page)
	})
}

// status is what the command shows.
type status struct {
	record  StatusRecord
	rows    [][]string
	summary summary
}

// fillRoles shows the table of roles, if there are any.
func (s status) fillRoles(page *console.Page) {
	if len(s.rows) > 1 {
		page.Line("")
		page.Table(s.rows, "APPLICATION", "CLIENT", "PID", "LEASE", "TERM")
	}
}

func (c *statusCommand) read(ctx context.Context, backend connect.Backend, roles []tenure.Role) (status, error) {
	holders, err := backend.Holders(ctx, roles...)
	if err == nil && len(holders) == 0 {
		err = c.requireSchema(ctx, backend)
	}
	if err != nil {
		return status{}, err
	}
	s := status{
		record: StatusRecord{Roles: []roleRecord{}},
		rows:   [][]string{{"ROLE", "STATE", "NODE", "TERM", "SINCE", "LEASE", "PID", "CLIENT", "APPLICATION"}},
	}
	s.summary, err = summarize(ctx, backend, c.work, holders)
	_, byLeases := backend.(connect.Leases)
	for _, holder := range holders {
		role := newRoleRecord(holder)
		if byLeases {
			role.Key = nil
		}
		role.addLast(s.summary)
		s.record.Roles = append(s.record.Roles, role)
		s.rows = append(s.rows, role.rows(holder.Leader)...)
	}
	s.record.Problems, s.record.Summary = s.summary.problems(), s.summary.sentence()
	s.record.Well = len(s.record.Problems) == 0
	return s, err
}

// requireSchema returns an error if the schema does not exist.
func (c *statusCommand) requireSchema(ctx context.Context, backend connect.Backend) error {
	version, err := backend.SchemaVersion(ctx)
	if leases, ok := backend.(connect.Leases); ok && leases.Dialect() != lease.PostgreSQL && err == nil && version == 0 {
		return fmt.Errorf("%w: there are no tables with prefix %q; a node or tenure migrate creates them",
			dberr.ErrSchema, c.database.Prefix)
	}
	if err == nil && version == 0 {
		err = fmt.Errorf("%w: there are no tables in schema %q with prefix %q; a node or tenure migrate creates them",
			dberr.ErrSchema, c.database.Schema, c.database.Prefix)
	}
	return err
}

func newRoleRecord(holder history.RoleStatus) roleRecord {
	key := holder.Key.String()
	role := roleRecord{
		Role: holder.Role, Key: &key, Leader: newLeaderRecord(holder.Leader), Sessions: []sessionRecord{},
		Blockers: []BlockerRecord{},
	}
	for _, b := range holder.Blockers {
		role.Blockers = append(role.Blockers, BlockerRecord{
			PID: b.PID, Prepared: b.Prepared, User: b.User, Application: b.Application, Since: console.Timestamp(b.Since),
			Terminable: b.Terminable, Advice: b.Advice,
		})
	}
	for _, s := range holder.Sessions {
		record := sessionRecord{
			State: StateForeign, NodeName: s.NodeName, PID: s.PID, User: s.User, Client: s.Client,
			Application: s.Application, StartedAt: console.Timestamp(s.Started),
		}
		if !s.Foreign() {
			record.Node, record.State = &s.NodeID, stateWaits
			if holder.Leader != nil && holder.Leader.NodeID == s.NodeID {
				record.State = StateLed
			}
		}
		role.Sessions = append(role.Sessions, record)
	}
	switch {
	case holder.Leader != nil:
		role.State = StateLed
	case len(role.Sessions) > 0:
		role.State = role.Sessions[0].State
	default:
		role.State = stateVacant
	}
	return role
}

// addLast adds how the last term ended, if no node leads.
func (r *roleRecord) addLast(s summary) {
	t, found := s.last[r.Role]
	if !found || r.Leader != nil {
		return
	}
	r.Last = &lastTermRecord{t.Node, t.NodeName, console.Timestamp(t.Ended), string(t.Reason), t.Cause, console.Timestamp(t.NextBy)}
	if r.State == stateVacant && slices.Contains(s.rest, r.Role) {
		r.State = StateAtRest
	}
}

// rows returns the role's table rows: one for each server session, and one for
// a recorded leader without a session.
func (r roleRecord) rows(leader *tenure.Leader) [][]string {
	var rows [][]string
	led := false
	for _, s := range r.Sessions {
		row := []string{r.Role, s.State, console.OrDash(s.NodeName), "-", "-", "-", strconv.Itoa(int(s.PID)), console.OrDash(s.Client), console.OrDash(s.Application)}
		if s.State == StateLed {
			led = true
			copy(row[2:], leaderColumns(leader))
		}
		rows = append(rows, row)
	}
	switch {
	case leader != nil && !led:
		row := append([]string{r.Role, StateLed}, leaderColumns(leader)...)
		rows = append([][]string{append(row, "-", "-", "-")}, rows...)
	case len(rows) == 0:
		since := "-"
		if r.Last != nil {
			since = console.ShortTime(time.Time(r.Last.Ended))
		}
		rows = [][]string{{r.Role, r.State, "-", "-", since, "-", "-", "-", "-"}}
	}
	return rows
}

// leaderColumns returns the table's columns for a leader: its name, with that of its agent
// if it has one, the number of its term, its begin, and the remaining time of its lease.
func leaderColumns(leader *tenure.Leader) []string {
	name := leader.NodeName
	if leader.Agent != "" {
		name += " (" + leader.Agent + ")"
	}
	return []string{
		name, strconv.FormatInt(leader.Term, 10), console.ShortTime(leader.AcquiredAt), leader.ValidFor.Round(100 * time.Millisecond).String(),
	}
}
