package database

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/flagvalue"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/postgres"
)

const doctorLong = `Connect and say, line by line, what would break an election here, and what to do
about it. It opens a session up to its first heartbeat and takes that back, so
other nodes see nothing of it.

With --roles it says whether the lock table of PostgreSQL has room for so many
roles, instead of for those that there are, and what max_locks_per_transaction
must be.

The exit code is 0 if a node could take part, also with warnings, and 3 if not.`

// doctorCommand examines a database.
type doctorCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	roles    flagvalue.Number
}

// mostRoles bounds how many roles the doctor is asked about.
const mostRoles = 100_000_000

// NewDoctor returns the command "tenure doctor".
func NewDoctor(out *console.Output) *cobra.Command {
	c := &doctorCommand{out: out, roles: flagvalue.Number{Most: mostRoles}}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what would break an election on this database",
		Long:  doctorLong,
		Args:  console.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	cmd.Flags().Var(&c.roles, "roles", "how many roles the lock table must have room for; default those that there are")
	c.database.Register(cmd.Flags())
	return cmd
}

// diagnosisRecord is the answer as it is printed.
type diagnosisRecord struct {
	Findings []FindingRecord `json:"findings"`
}

// FindingRecord is a finding as it is printed.
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
		return console.ExitWith(console.ExitDatabase, fmt.Errorf("no election can take place here: %d of the findings are failures", failures))
	}
	return nil
}

// examine returns the findings. What is said of the lock table concerns the
// number of roles that is asked about.
func (c *doctorCommand) examine(cmd *cobra.Command, opened connect.Backend) ([]doctor.Finding, error) {
	planned := cmd.Flags().Changed("roles")
	sessions, ok := opened.(*postgres.Backend)
	if planned && !ok {
		return nil, console.Usage("--roles is about the lock table of PostgreSQL, which leases do not need")
	}
	found := opened.Diagnose(cmd.Context())
	for i := range found {
		if planned && found[i].Name == LockTableFinding {
			found[i] = sessions.CheckLockTable(cmd.Context(), c.roles.Value)
		}
	}
	return found, nil
}

// LockTableFinding is what the finding about the lock table is called.
const LockTableFinding = "lock table"
