package database

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/postgres"
)

const doctorLong = `Connect, and report what would prevent elections here, one finding per line, and how
to fix it. The command opens a session, sends one heartbeat and closes the session;
other nodes do not notice.

With --roles it checks whether the lock table of PostgreSQL has room for this number
of roles, instead of for the existing ones, and prints the value that
max_locks_per_transaction needs.

With --synchronous-failover it checks whether the settings of synchronous replication
permit nodes to declare that.

It also names processors that cannot work, which prevents no election.

The exit code is 0 if a node could take part in elections, even with warnings, and 3
if not.`

// doctorCommand examines a database.
type doctorCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	roles    flagvalue.Number
	declared bool // a synchronous failover
}

// maxRoles limits --roles.
const maxRoles = 100_000_000

// NewDoctor returns the command "tenure doctor".
func NewDoctor(out *console.Output) *cobra.Command {
	c := &doctorCommand{out: out, roles: flagvalue.Number{Most: maxRoles}}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether elections can work on this database",
		Long:  doctorLong,
		Args:  console.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	cmd.Flags().Var(&c.roles, "roles", "number of roles that the lock table must have room for; default the existing roles")
	cmd.Flags().BoolVar(&c.declared, "synchronous-failover", false, "check whether nodes may declare that only synchronous standbys are promoted")
	c.database.Register(cmd.Flags())
	return cmd
}

// diagnosisRecord is the printed result.
type diagnosisRecord struct {
	Findings []FindingRecord `json:"findings"`
}

// FindingRecord is a finding as printed.
type FindingRecord struct {
	Name     string          `json:"name"`
	Severity doctor.Severity `json:"severity"` // ok, warning or failure
	Detail   string          `json:"detail"`
	Advice   string          `json:"advice"` // empty if there is nothing to do
}

func (c *doctorCommand) run(cmd *cobra.Command) error {
	backend, err := c.database.Open(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer backend.Close()
	found, err := c.examine(cmd, backend)
	if err != nil {
		return err
	}
	record := diagnosisRecord{Findings: []FindingRecord{}}
	var rows [][]string
	failures := 0
	for _, f := range found {
		if f.Severity == doctor.Failure {
			failures++
		}
		detail, advice := console.Flatten(f.Detail), console.Flatten(f.Advice)
		record.Findings = append(record.Findings, FindingRecord{f.Name, f.Severity, detail, advice})
		rows = append(rows, []string{f.Severity.String(), f.Name, detail})
		if advice != "" {
			rows = append(rows, []string{"", "", "-> " + advice})
		}
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	if err := c.out.PrintProse(record, rows); err != nil {
		return err
	}
	if failures > 0 {
		return console.ExitWith(console.ExitDatabase, cannotTakePart(failures))
	}
	return nil
}

// cannotTakePart is the error after failures. It is about this connection: elections may
// work for nodes that connect as another user or to another server.
func cannotTakePart(failures int) error {
	text := "1 finding is a failure"
	if failures > 1 {
		text = fmt.Sprintf("%d findings are failures", failures)
	}
	return fmt.Errorf("a node with this connection cannot take part in elections: %s", text)
}

// examine returns the findings. The one about the lock table applies to the
// number of roles in --roles.
func (c *doctorCommand) examine(cmd *cobra.Command, opened connect.Backend) ([]doctor.Finding, error) {
	planned := cmd.Flags().Changed("roles")
	sessions, ok := opened.(*postgres.Backend)
	if planned && !ok {
		return nil, console.Usage("--roles concerns the lock table of PostgreSQL, which leases do not use")
	}
	found := opened.Diagnose(cmd.Context())
	for i := range found {
		if planned && found[i].Name == LockTableFinding {
			found[i] = sessions.CheckLockTable(cmd.Context(), c.roles.Value)
		}
	}
	if c.declared && ok {
		found = append(found, sessions.CheckSynchronousFailover(cmd.Context()))
	}
	if ok {
		found = append(found, c.examineWork(cmd.Context(), sessions)...)
	}
	return found, nil
}

// LockTableFinding is the name of the finding about the lock table.
const LockTableFinding = "lock table"
