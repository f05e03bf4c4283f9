package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/schema"
)

// features reports the version of each feature's tables, a finding for each. An
// election needs none of them, so none is a failure.
func (d *diagnosis) features(ctx context.Context, conn *pgx.Conn) {
	versions, err := d.backend.schema.Versions(ctx, conn)
	if err != nil || versions == nil { // the finding on the schema has the error
		return
	}
	damages, err := d.backend.schema.ReadDamages(ctx, conn, versions, schema.Registered()...)
	if err != nil {
		d.fail("tables of features", err)
		return
	}
	for _, f := range schema.Registered() {
		if found := ofFeature(damages, f); len(found) > 0 {
			d.add("tables of "+f.Name, doctor.Warning, d.backend.schema.Refusal(found).Error(), "")
			continue
		}
		d.feature(f, versions[f.Name])
	}
	for _, name := range versions.Unknown() {
		d.add("tables of "+name, doctor.OK, fmt.Sprintf("version %d; this program does not have the feature", versions[name].Present), "")
	}
}

func (d *diagnosis) feature(f *schema.Feature, version schema.Version) {
	name := "tables of " + f.Name
	manual := d.backend.config.ManualMigrations
	command := "before the first use, run tenure migrate up --feature " + f.Name
	switch present, newest := version.Present, f.Newest(); {
	case version.Usable(f) != nil:
		d.add(name, doctor.Warning, fmt.Sprintf("version %d; this program works with version %d", present, newest), "use a newer release of the program")
	case present > newest:
		d.add(name, doctor.OK, fmt.Sprintf("version %d; this program knows version %d and works with both", present, newest), "")
	case present == newest:
		d.add(name, doctor.OK, fmt.Sprintf("version %d", present), "")
	case present == 0 && manual:
		d.add(name, doctor.OK, fmt.Sprintf("not installed, version %d is wanted", newest), command)
	case present == 0:
		d.add(name, doctor.OK, fmt.Sprintf("not installed; the first use creates version %d", newest), "")
	case manual:
		d.add(name, doctor.Warning, fmt.Sprintf("version %d; version %d is wanted", present, newest), command)
	default:
		d.add(name, doctor.OK, fmt.Sprintf("version %d; the next use brings it to version %d", present, newest), "")
	}
}
