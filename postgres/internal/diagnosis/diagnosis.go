// Package diagnosis examines an installation and its server for obstacles to an election.
package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// Diagnose is the method of the backend with this name.
func (e *Examiner) Diagnose(ctx context.Context) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, link.AskTimeout)
	defer cancel()
	d := &diagnosis{Examiner: e}
	d.run(ctx)
	return d.findings
}

func (d *diagnosis) run(ctx context.Context) {
	s, err := d.Open(ctx)
	if err != nil {
		d.fail(findingOf(err), err)
		return
	}
	defer s.Close()
	conn := s.Conn()
	config := conn.Config()
	d.add("connection", doctor.OK, fmt.Sprintf("user %s, database %s", config.User, config.Database), "")

	if !d.server(ctx, s) {
		return
	}
	usable := d.schema(ctx, conn)
	d.features(ctx, conn)
	if usable {
		d.session(ctx, s)
		if err := d.blockedRoles(ctx); err != nil {
			d.missed("blocked roles", err)
		}
	}
	if err := pgdial.Apply(ctx, conn, pgdial.Question, link.LimitsOf(pgdial.Question)); err != nil {
		d.fail("settings", err)
		return
	}
	checks := []func(context.Context, *pgx.Conn) error{d.connections, d.lockTable, d.clock, d.durability, d.encoding}
	if usable {
		checks = append(checks, d.rowLocks)
	}
	for _, check := range checks {
		if err := check(ctx, conn); err != nil {
			d.missed("examination", err)
		}
	}
}

// missed adds the error of an examination. A node may work without what it reads: with few
// connections, or without a view of the server's.
func (d *diagnosis) missed(name string, err error) {
	severity := doctor.Failure
	if d.works && (sqlstate.Has(err, sqlstate.InsufficientPrivilege) || sqlstate.Has(err, sqlstate.TooManyConnections)) {
		severity = doctor.Warning
	}
	d.add(name, severity, err.Error(), "")
}

// findingOf names the finding for an error of connecting.
func findingOf(err error) string {
	for _, known := range []struct {
		category error
		name     string
	}{
		{dberr.ErrPooled, "pooler"},
		{dberr.ErrInRecovery, "recovery"},
		{dberr.ErrReadOnly, "read-only"},
		{dberr.ErrPrivilege, "settings"},
	} {
		if errors.Is(err, known.category) {
			return known.name
		}
	}
	return "connection"
}

// server checks the server of both connections.
func (d *diagnosis) server(ctx context.Context, s Trial) bool {
	version, err := s.ExamineServer(ctx)
	for _, check := range []struct {
		name, detail string
		refusal      error
	}{
		{"pooler", "connected directly", dberr.ErrPooled},
		{"version", fmt.Sprintf("PostgreSQL %d", version/10000), dberr.ErrServerTooOld},
		{"advisory locks", "they exclude each other", d.LocksIgnored},
		{"recovery", "the server is a primary", dberr.ErrInRecovery},
		{"read-only", "the server takes writes", dberr.ErrReadOnly},
	} {
		if errors.Is(err, check.refusal) {
			d.fail(check.name, err)
			return false
		}
		if err == nil {
			d.add(check.name, doctor.OK, check.detail, "")
		}
	}
	if err != nil {
		d.fail("server", err)
	}
	return err == nil
}

// schema checks the tables and the user's privileges on them. It reports whether
// a session can be tried.
func (d *diagnosis) schema(ctx context.Context, conn *pgx.Conn) bool {
	versions, err := d.Installation.UsableVersions(ctx, conn)
	version := versions[schema.Core].Present
	if err == nil {
		d.mode(ctx, conn)
	}
	if err == nil && version == 0 {
		err = d.Installation.RefuseRemains(ctx, conn)
	}
	switch {
	case errors.Is(err, install.ErrNoRows):
		if _, err := d.Installation.MigrateRepair(ctx, true); err != nil { // this user may not be the owner of the tables
			d.fail("schema", err)
			return false
		}
		d.add("schema", doctor.OK, "the tables have no rows; the first node to open fills them", "")
		return false
	case err != nil:
		d.fail("schema", err)
		return false
	case version < d.Installation.Core.Newest() && d.Installation.Manual:
		d.add("schema", doctor.Failure, fmt.Sprintf("it has version %d and version %d is needed", version, d.Installation.Core.Newest()), "run the migrations")
		return false
	case version < d.Installation.Core.Newest():
		d.mayMigrate(ctx, conn, version)
		return false
	}
	if err := pgdial.Apply(ctx, conn, pgdial.Question, link.LimitsOf(pgdial.Question)); err != nil {
		d.fail("settings", err)
		return false
	}
	detail := fmt.Sprintf("version %d", version)
	if versions[schema.Core].Another(d.Installation.Core) {
		detail += ", of another build of Tenure"
	}
	d.add("schema", doctor.OK, detail, "")
	if !d.parts(ctx, conn, versions) {
		return false
	}
	missing, err := d.Installation.MissingPrivileges(ctx, conn)
	switch {
	case err != nil:
		d.fail("privileges", err)
	case len(missing) > 0:
		d.add("privileges", doctor.Failure, "the database user lacks privileges", strings.Join(missing, " "))
	default:
		d.add("privileges", doctor.OK, "complete, ending the sessions of other nodes included", "")
	}
	return len(missing) == 0
}

// mode checks whether the installation elects by sessions.
func (d *diagnosis) mode(ctx context.Context, conn *pgx.Conn) {
	if err := d.Installation.CheckMode(ctx, conn); err != nil {
		d.fail("mode", err)
		return
	}
	d.add("mode", doctor.OK, installation.Sessions, "")
}

const mayCreate = `
SELECT CASE
    WHEN EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) THEN has_schema_privilege($1, 'CREATE')
    ELSE has_database_privilege(current_database(), 'CREATE')
END`

// mayMigrate checks whether the first node to open could create the schema.
func (d *diagnosis) mayMigrate(ctx context.Context, conn *pgx.Conn, version int) {
	var may bool
	if err := conn.QueryRow(ctx, mayCreate, d.Names.Schema).Scan(&may); err != nil {
		d.fail("schema", err)
		return
	}
	if may && version == 0 { // tables of another program may have the names
		if err := d.Installation.RehearseMigration(ctx, conn); err != nil {
			d.fail("schema", err)
			return
		}
	}
	detail := fmt.Sprintf("version %d; the first node to open brings it to version %d", version, d.Installation.Core.Newest())
	if may {
		d.add("schema", doctor.OK, detail, "")
		return
	}
	d.add("schema", doctor.Failure, fmt.Sprintf("it has version %d, and this user may not create tables in %s", version, d.Names.Schema),
		"run the migrations as another user")
}

const readConnections = `
SELECT
    (SELECT sum(numbackends) FROM pg_stat_database)::int, -- pg_stat_activity hides those of others
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int`

// connections checks whether there is room for nodes: each has two connections,
// and sometimes a third.
func (d *diagnosis) connections(ctx context.Context, conn *pgx.Conn) error {
	const few = 10
	var used, most int
	if err := conn.QueryRow(ctx, readConnections).Scan(&used, &most); err != nil {
		return err
	}
	detail := fmt.Sprintf("%d of %d in use", used, most)
	if most-used < few {
		d.add("connections", doctor.Warning, detail, "raise max_connections: a node needs two connections, and at times a third")
		return nil
	}
	d.add("connections", doctor.OK, detail, "")
	return nil
}

// clock compares the clocks. Tenure does not depend on their agreement, but it
// helps operators to read logs.
func (d *diagnosis) clock(ctx context.Context, conn *pgx.Conn) error {
	const much = 5 * time.Second
	var there time.Time
	sent := time.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&there); err != nil {
		return err
	}
	travel := time.Since(sent)
	ahead := there.Sub(sent.Add(travel / 2)).Round(time.Millisecond)
	detail := fmt.Sprintf("the server's is ahead of this machine's by %v, the answer took %v", ahead, travel.Round(10*time.Microsecond))
	if ahead.Abs() > much {
		d.add("clock", doctor.Warning, detail, "synchronize both with a time server: elections do not compare the clocks, but operators do")
		return nil
	}
	d.add("clock", doctor.OK, detail, "")
	return nil
}

const readDurability = `
SELECT
    current_setting('fsync')::boolean,
    current_setting('full_page_writes')::boolean,
    current_setting('synchronous_standby_names'),
    EXISTS (SELECT FROM pg_stat_replication)`

// durability checks whether terms survive a crash and a failover.
func (d *diagnosis) durability(ctx context.Context, conn *pgx.Conn) error {
	var (
		fsync, fullPages, replicas bool
		standbys                   string
	)
	// Rows of other users in pg_stat_replication are visible, with columns hidden.
	if err := conn.QueryRow(ctx, readDurability).Scan(&fsync, &fullPages, &standbys, &replicas); err != nil {
		return err
	}
	switch {
	case !fsync || !fullPages:
		d.add("durability", doctor.Warning, "fsync or full_page_writes is off: a crash of the machine can lose terms", "turn both on")
	case standbys == "" && replicas:
		d.add("durability", doctor.Warning, "replication is asynchronous: a failover can lose the last terms, and an old primary that is not stopped can keep a second leader",
			"set synchronous_standby_names, or fence the old primary and set the failover wait to that bound")
	case standbys != "":
		detail := "synchronous standbys: " + standbys + "; elections stop for as long as "
		if s := parseStandbys(standbys); s.needed < len(s.names) {
			detail += "too few of them answer; do not declare a synchronous failover"
		} else {
			detail += "one of them hangs"
		}
		d.add("durability", doctor.OK, detail, "")
	default:
		d.add("durability", doctor.OK, "commits are flushed", "")
	}
	return nil
}
