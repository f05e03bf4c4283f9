package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Diagnose connects and reports what would prevent or endanger elections on this database.
// It changes nothing. After a failure it skips the dependent checks. If ctx has no
// deadline, Diagnose ends after 10 s.
func (b *Backend) Diagnose(ctx context.Context) []doctor.Finding {
	ctx, cancel := sqldb.WithDefaultTimeout(ctx)
	defer cancel()
	d := &diagnosis{backend: b}
	d.run(ctx)
	return d.findings
}

type diagnosis struct {
	backend  *Backend
	findings []doctor.Finding
}

func (d *diagnosis) add(name string, severity doctor.Severity, detail, advice string) {
	d.findings = append(d.findings, doctor.Finding{Name: name, Severity: severity, Detail: detail, Advice: advice})
}

func (d *diagnosis) run(ctx context.Context) {
	bad, err := d.backend.readBadSettings(ctx)
	for _, s := range bad {
		d.add("settings", doctor.Failure, s.detail(), s.remedy)
	}
	if err == nil && len(bad) > 0 {
		return
	}
	begun := time.Now()
	version, err := d.backend.identify(ctx)
	took := time.Since(begun)
	if err != nil {
		d.add("database", doctor.Failure, err.Error(), "")
		return
	}
	d.add("database", doctor.OK, fmt.Sprintf("%s, responds in %v", version, took.Round(10*time.Microsecond)), "")
	d.add("failover", doctor.OK, fmt.Sprintf("a standby takes over within the lease of a crashed leader, %v by default", d.backend.DefaultLease()), "")
	// A pooler in statement mode allows queries but no transactions.
	if err := d.backend.db.InTx(ctx, "begin a transaction", func(context.Context, sqldb.Querier) error { return nil }); err != nil {
		d.add("transactions", doctor.Failure, err.Error(), "")
		return
	}
	if d.tables(ctx) {
		d.writes(ctx)
	}
	d.clock(ctx)
	d.durability(ctx)
	d.writers(ctx)
}

// writers checks whether other servers accept writes too.
func (d *diagnosis) writers(ctx context.Context) {
	var setting, server string
	err := d.backend.db.Read(ctx, "read settings", func(ctx context.Context, on sqldb.Querier) (err error) {
		if setting, err = d.backend.multiPrimarySetting(ctx, on); err != nil || setting == "" {
			return err
		}
		return sqldb.ForEach(ctx, on, "SELECT "+serverName, func(rows *sql.Rows) error { return rows.Scan(&server) })
	})
	switch {
	case err != nil:
		d.add("writers", doctor.Warning, err.Error(), "")
	case setting != "":
		d.add("writers", doctor.Warning, fmt.Sprintf("%s is one of several servers that accept writes (%s)", server, setting),
			"connect all nodes to one server at a time: a node that reaches another one gets an error")
	}
}

// tables reports whether statements can use the tables.
func (d *diagnosis) tables(ctx context.Context) (usable bool) {
	if d.backend.db.Dialect == sqldb.PostgreSQL {
		if _, err := d.backend.checkMode(ctx); err != nil {
			d.add("mode", doctor.Failure, err.Error(), "")
		} else {
			d.add("mode", doctor.OK, installation.Leases, "")
		}
	}
	version, err := d.backend.SchemaVersion(ctx)
	if err == nil && (version == 0 || version == schemaVersion) {
		err = d.backend.damage(ctx, version > 0)
	}
	switch {
	case err != nil:
		d.add("tables", doctor.Failure, err.Error(), "")
		return false
	case version > schemaVersion:
		d.add("tables", doctor.Failure, newerSchema(version).Error(), "")
		return false
	case version == 0:
		d.add("tables", doctor.OK, "none yet: the first node or tenure migrate creates them", "")
	default:
		d.add("tables", doctor.OK, fmt.Sprintf("version %d", version), "")
	}
	return version > 0
}

// writes checks whether a transaction may write to the tables. It deletes no row: a server
// refuses such a statement too.
func (d *diagnosis) writes(ctx context.Context) {
	engines, err := d.backend.readBadEngines(ctx)
	for _, s := range engines {
		d.add("tables", doctor.Failure, s.detail(), s.remedy)
	}
	if err == nil {
		err = d.backend.db.InTx(ctx, "write to the tables", func(ctx context.Context, on sqldb.Querier) error {
			return sqldb.Exec(ctx, on, d.backend.sql(deleteSessionQuery), noSession)
		})
	}
	if err != nil {
		d.add("writes", doctor.Failure, err.Error(), "")
	}
}

// noSession is the incarnation of no session.
const noSession = -1

// clock compares the clocks. Elections use only the database's clock; a difference
// only makes displayed times misleading.
func (d *diagnosis) clock(ctx context.Context) {
	var micros int64
	before := time.Now()
	err := d.backend.db.Read(ctx, "read the clock", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, d.backend.sql(clockQuery), func(rows *sql.Rows) error { return rows.Scan(&micros) })
	})
	after := time.Now()
	if err != nil {
		d.add("clock", doctor.Failure, err.Error(), "")
		return
	}
	const notable = time.Second
	at := time.UnixMicro(micros)
	ahead := max(at.Sub(after), 0) + min(at.Sub(before), 0)
	if ahead.Abs() < notable {
		d.add("clock", doctor.OK, "within a second of this machine's", "")
		return
	}
	d.add("clock", doctor.Warning, fmt.Sprintf("the database's clock differs from this machine's by %v", ahead.Round(time.Millisecond)),
		"synchronize the clocks: elections use only the database's clock, but logs and reports show both")
}

// durability checks the settings for durable commits: otherwise a crash could lose an
// acknowledged term, and its number would be assigned again.
func (d *diagnosis) durability(ctx context.Context) {
	var found string
	query := durabilityQueries[d.backend.db.Dialect]
	err := d.backend.db.Read(ctx, "read settings", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, query.statement, func(rows *sql.Rows) error { return rows.Scan(&found) })
	})
	switch {
	case err != nil:
		d.add("durability", doctor.Warning, err.Error(), "")
	case strings.EqualFold(found, query.wanted):
		d.add("durability", doctor.OK, query.setting+" is "+found, "")
	default:
		d.add("durability", doctor.Warning, fmt.Sprintf("%s is %s: a crash can lose terms that have begun", query.setting, found),
			fmt.Sprintf("set it to %s", query.wanted))
	}
}

var durabilityQueries = map[sqldb.Dialect]struct{ setting, statement, wanted string }{
	// Transactions set synchronous_commit themselves but cannot set fsync.
	sqldb.PostgreSQL: {"fsync", "SELECT current_setting('fsync')", "on"},
	sqldb.SQLite:     {"synchronous", "SELECT synchronous FROM pragma_synchronous", "2"},
	sqldb.MySQL:      {"innodb_flush_log_at_trx_commit", "SELECT @@innodb_flush_log_at_trx_commit", "1"},
}

// identify returns the version of the database, and an error if it must not be used.
func (b *Backend) identify(ctx context.Context) (string, error) {
	version, place, err := b.version(ctx)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(productName(b.db.Dialect, version) + " " + versionNumber(version)), errors.Join(b.checkDatabase(version, place), b.db.CheckAutocommit(ctx))
}
