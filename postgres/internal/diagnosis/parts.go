package diagnosis

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/schema"
)

// parts compares the core with its migrations. It reports whether a session would open.
// The index for fencing is a separate finding.
func (d *diagnosis) parts(ctx context.Context, conn *pgx.Conn, versions schema.Versions) bool {
	damages, err := d.Installation.Schema.ReadDamages(ctx, conn, versions, d.Installation.Core)
	if err != nil {
		d.fail("objects", err)
		return false
	}
	fenced := true
	for _, found := range damages {
		fenced = fenced && (found.Kind != schema.KindIndex || found.Object != schema.FencingIndex)
	}
	if fenced {
		d.add("fencing index", doctor.OK, "in place", "")
	} else {
		d.fail("fencing index", fmt.Errorf("%w: the unique index on (role, term) is missing, and fencing protects nothing without it", dberr.ErrDamaged))
	}
	if len(damages) > 0 {
		d.fail("objects", d.Installation.Schema.Refusal(damages))
		return false
	}
	d.add("objects", doctor.OK, "tables, columns, indexes, triggers and functions are as the migrations made them", "")
	return true
}
