package diagnosis

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/install"
)

// features reports the version of each feature's tables, a finding for each. An
// election needs none of them, so none is a failure.
func (d *diagnosis) features(ctx context.Context, conn *pgx.Conn) {
	versions, err := d.Installation.Schema.Versions(ctx, conn)
	if err != nil || versions == nil { // the finding on the schema has the error
		return
	}
	damages, err := d.Installation.Schema.ReadDamages(ctx, conn, versions, schema.Registered()...)
	if err != nil {
		d.fail("tables of features", err)
		return
	}
	for _, f := range schema.Registered() {
		if found := install.OfFeature(damages, f); len(found) > 0 {
			d.add("tables of "+f.Name, doctor.Warning, d.Installation.Schema.Refusal(found).Error(), "")
			continue
		}
		d.findings = append(d.findings, FeatureFinding(f, versions[f.Name], d.Installation.Manual))
	}
	for _, name := range versions.Unknown() {
		d.add("tables of "+name, doctor.OK, fmt.Sprintf("version %d; this program does not have the feature", versions[name].Present), "")
	}
}

// FeatureFinding is the finding on the tables of a feature. manual is whether sessions do not
// migrate.
func FeatureFinding(f *schema.Feature, version schema.Version, manual bool) doctor.Finding {
	finding := func(severity doctor.Severity, detail, advice string) doctor.Finding {
		return doctor.Finding{Name: "tables of " + f.Name, Severity: severity, Detail: detail, Advice: advice}
	}
	command := "before the first use, run tenure migrate up --feature " + f.Name
	switch present, newest := version.Present, f.Newest(); {
	case version.Usable(f) != nil:
		return finding(doctor.Warning, fmt.Sprintf("version %d; this program works with version %d", present, newest), "use a newer release of the program")
	case present > newest:
		return finding(doctor.OK, fmt.Sprintf("version %d; this program knows version %d and works with both", present, newest), "")
	case present == newest:
		return finding(doctor.OK, fmt.Sprintf("version %d", present), "")
	case present == 0 && manual:
		return finding(doctor.OK, fmt.Sprintf("not installed, version %d is wanted", newest), command)
	case present == 0:
		return finding(doctor.OK, fmt.Sprintf("not installed; the first use creates version %d", newest), "")
	case manual:
		return finding(doctor.Warning, fmt.Sprintf("version %d; version %d is wanted", present, newest), command)
	default:
		return finding(doctor.OK, fmt.Sprintf("version %d; the next use brings it to version %d", present, newest), "")
	}
}
