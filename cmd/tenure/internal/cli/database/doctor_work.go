package database

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// ProcessorsFinding is the name of the finding about processors.
const ProcessorsFinding = "processors"

// workTimeout limits the reads of this finding.
const workTimeout = 5 * time.Second

// mostNamed limits the processors that a finding names.
const mostNamed = 3

// examineWork returns a finding about the processors of an installation, if it has any.
func (c *doctorCommand) examineWork(ctx context.Context, backend *postgres.Backend) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	all, err := c.processors(ctx, backend)
	switch {
	case err != nil:
		return []doctor.Finding{{
			Name: ProcessorsFinding, Severity: doctor.Warning, Detail: "cannot be read: " + err.Error(),
			Advice: "grant what tenure migrate grants --work prints",
		}}
	case len(all) == 0:
		return nil
	}
	var stuck []string
	for _, s := range all {
		if s.Status == processor.Active && s.StuckError != "" {
			stuck = append(stuck, fmt.Sprintf("%s has been unable to work for %v: %s", s.Name, s.StuckFor.Round(time.Second), s.StuckError))
		}
	}
	if len(stuck) == 0 {
		return []doctor.Finding{{Name: ProcessorsFinding, Severity: doctor.OK, Detail: fmt.Sprintf("none of %d is stuck", len(all))}}
	}
	detail := strings.Join(stuck[:min(len(stuck), mostNamed)], "; ")
	if others := len(stuck) - mostNamed; others > 0 {
		detail += fmt.Sprintf("; and %d more", others)
	}
	return []doctor.Finding{{
		Name: ProcessorsFinding, Severity: doctor.Warning, Detail: detail, Advice: "fix the cause; tenure processor show NAME has the whole error",
	}}
}

// processors returns the processors of an installation, none if their tables do not exist.
func (c *doctorCommand) processors(ctx context.Context, backend *postgres.Backend) ([]processor.Status, error) {
	target, err := c.database.Target()
	if err != nil {
		return nil, err
	}
	pool, err := target.Pool(ctx, "status")
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	versions, err := schema.Of(backend).Versions(ctx, pool)
	if err != nil || versions[features.Processors.Name].Present == 0 {
		return nil, nil //nolint:nilerr // the other findings say what is wrong with the database or the schema
	}
	return processor.NewAdmin(backend, pool).List(ctx)
}
