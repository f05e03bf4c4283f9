package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
)

const doctorLong = `Connect and say, line by line, what would break an election here, and what to do
about it. It changes nothing.

The exit code is 0 if a node could take part, also with warnings, and 3 if not.`

// doctorCommand examines a database.
type doctorCommand struct {
	out      *output
	database databaseFlags
}

func newDoctor(out *output) *cobra.Command {
	c := &doctorCommand{out: out}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what would break an election on this database",
		Long:  doctorLong,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.database.register(cmd.Flags())
	return cmd
}

// diagnosisRecord is the answer as it is printed.
type diagnosisRecord struct {
	Findings []findingRecord `json:"findings"`
}

type findingRecord struct {
	Name     string          `json:"name"`
	Severity tenure.Severity `json:"severity"` // ok, warning or failure
	Detail   string          `json:"detail"`
	Advice   string          `json:"advice"` // empty if there is nothing to do
}

func (c *doctorCommand) run(cmd *cobra.Command) error {
	backend, err := c.database.open(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer backend.Close()
	record := diagnosisRecord{Findings: []findingRecord{}}
	var rows [][]string
	failures := 0
	for _, f := range backend.Diagnose(cmd.Context()) {
		if f.Severity == tenure.Failure {
			failures++
		}
		detail, advice := flatten(f.Detail), flatten(f.Advice)
		record.Findings = append(record.Findings, findingRecord{f.Name, f.Severity, detail, advice})
		rows = append(rows, []string{f.Severity.String(), f.Name, detail})
		if advice != "" {
			rows = append(rows, []string{"", "", "-> " + advice})
		}
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	if err := c.out.printProse(record, rows); err != nil {
		return err
	}
	if failures > 0 {
		return &exitError{exitDatabase, fmt.Errorf("no election can take place here: %d of the findings are failures", failures)}
	}
	return nil
}
