package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	_ "github.com/exactly-one/tenure/internal/features" // their tables are damaged too
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// fewestCells is how many ways to damage a database there are at least.
const fewestCells = 400

// TestEveryDamageHasAWayOut: whatever differs from what Tenure made, either the doctor and
// a node, with the features that it uses, are content, or both name the same thing and the
// command that mends it. After the command a node leads, with a greater number than before.
func TestEveryDamageHasAWayOut(t *testing.T) {
	pgtest.Long(t)
	s := newDamageSite(t)
	all := cells(t, s.server.DSNFor("postgres", s.template))
	if len(all) < fewestCells {
		t.Errorf("%d ways to damage a database; want at least %d", len(all), fewestCells)
	}
	seats := make(chan struct{}, 3)
	t.Run("cells", func(t *testing.T) {
		for _, cell := range all {
			t.Run(cell.name, func(t *testing.T) {
				t.Parallel()
				seats <- struct{}{}
				defer func() { <-seats }()
				if path := s.judge(t, cell); len(path) == 0 && !unnoticed.MatchString(cell.name) {
					t.Error("the doctor and a node are content; want the damage to be noticed")
				}
			})
		}
	})
}

// TestSomeDamagesHaveAWayOut is one cell of each kind.
func TestSomeDamagesHaveAWayOut(t *testing.T) {
	t.Parallel()
	s := newDamageSite(t)
	for _, cell := range []struct {
		damageCell

		want []string // commands
	}{
		{damageCell{"all rows gone", settingCell(t, "all rows gone")}, nil},
		{damageCell{"table dropped", "DROP TABLE tenure_terms CASCADE"}, []string{schema.RepairCommand}},
		{damageCell{"table unlogged", "ALTER TABLE tenure_terms SET UNLOGGED"}, []string{schema.RepairCommand}},
		{damageCell{"trigger disabled", "ALTER TABLE tenure_terms DISABLE TRIGGER tenure_keep_terms"}, []string{schema.RepairCommand}},
		{damageCell{"rule", "CREATE RULE nothing AS ON DELETE TO tenure_history DO INSTEAD NOTHING"}, []string{schema.RepairCommand}},
		{damageCell{"check", "ALTER TABLE tenure_terms ADD CHECK (term < 0) NOT VALID"}, []string{schema.RepairCommand}},
		{damageCell{"replica identity", "CREATE PUBLICATION everything FOR ALL TABLES; ALTER TABLE tenure_terms REPLICA IDENTITY NOTHING"}, []string{schema.RepairCommand}},
		{damageCell{"trigger before rows", strangeTrigger + "CREATE TRIGGER strange BEFORE UPDATE ON tenure_nodes FOR EACH ROW EXECUTE FUNCTION strange()"}, []string{schema.RepairCommand}},
		{damageCell{"trigger after rows", strangeTrigger + "CREATE TRIGGER strange AFTER UPDATE ON tenure_nodes FOR EACH ROW EXECUTE FUNCTION strange()"}, nil},
		{damageCell{"column of a feature dropped", "ALTER TABLE tenure_runs DROP COLUMN term"}, []string{schema.RepairCommand}},
		{damageCell{"sequences behind", settingCell(t, "all sequences begin again")}, nil},
		{damageCell{"column added", "ALTER TABLE tenure_terms ADD COLUMN extra text"}, nil},
	} {
		t.Run(cell.name, func(t *testing.T) {
			if path := s.judge(t, cell.damageCell); !slices.Equal(path, cell.want) {
				t.Errorf("commands that mended it: %q; want %q", path, cell.want)
			}
		})
	}
}

func settingCell(t *testing.T, name string) string {
	all := settingCells()
	i := slices.IndexFunc(all, func(c damageCell) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no cell %q", name)
	}
	return all[i].sql
}

// damageSite is a server with a database in which a role has been led. Its user app owns
// everything, and has no special rights.
type damageSite struct {
	server   *pgtest.Server
	template string
	last     int64 // number of the last term
}

func newDamageSite(t *testing.T) *damageSite {
	t.Helper()
	s := &damageSite{server: pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "100", "allow_system_table_mods": "on"}}), template: "template_tenure"}
	s.exec(t, s.server.DSN(), "CREATE ROLE app LOGIN; CREATE ROLE stranger")
	s.exec(t, s.server.DSN(), "CREATE DATABASE template_tenure OWNER app")
	s.exec(t, s.server.DSNFor("postgres", s.template), "ALTER SCHEMA public OWNER TO app")
	b := s.backend(t, "app", s.template)
	defer b.Close()
	if err := b.Migrate(t.Context(), schema.All); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		number, err := s.lead(t, b)
		if err != nil {
			t.Fatal(err)
		}
		s.last = number
	}
	return s
}

func (s *damageSite) exec(t *testing.T, dsn, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (s *damageSite) backend(t *testing.T, user, database string) *postgres.Backend {
	t.Helper()
	b, err := postgres.New(s.server.DSNFor(user, database), postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lead opens a node that leads once, and returns the number of its term.
func (s *damageSite) lead(t *testing.T, b *postgres.Backend) (number int64, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), postgrestest.Patience)
	defer cancel()
	node, err := tenure.Open(ctx, b, tenure.Config{Lease: 2 * time.Second, Logger: postgrestest.Logger(t)})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closeErr := node.Close(context.WithoutCancel(ctx)); err == nil {
			err = closeErr
		}
	}()
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		return 0, err
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		return 0, fmt.Errorf("the node opened, and did not lead: %w", err)
	}
	return term.Number(), term.Resign(ctx)
}

// judge damages a copy of the database and follows what the doctor and a node say. It
// returns the commands.
func (s *damageSite) judge(t *testing.T, cell damageCell) (path []string) {
	t.Helper()
	database := s.copyOf(t)
	s.exec(t, s.server.DSNFor("postgres", database), cell.sql)
	for range 4 {
		findings, err := s.examine(t, database)
		if len(findings) == 0 && err == nil {
			if len(path) > 0 {
				t.Logf("mended by %s", strings.Join(path, ", then "))
			}
			return path
		}
		if len(findings) == 0 || err == nil {
			t.Fatalf("after %v: the doctor says %q, and a node: %v; want both content, or neither", path, findings, err)
		}
		command := commandOf(err.Error())
		if command == "" {
			t.Fatalf("after %v: a node says %v; want a command that mends it", path, err)
		}
		if !slices.ContainsFunc(findings, func(f string) bool { return commandOf(f) == command && namesSame(f, err.Error()) }) {
			t.Fatalf("after %v: the doctor says\n%s\nand a node\n%v\nwant the same thing and the same command", path, strings.Join(findings, "\n"), err)
		}
		path = append(path, command)
		if err := s.follow(t, database, command); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	t.Fatalf("still damaged after %s", strings.Join(path, ", then "))
	return nil
}

// copyOf creates a copy of the database.
func (s *damageSite) copyOf(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(t.Name())))
	name = "c" + name[max(0, len(name)-40):] + fmt.Sprint(time.Now().UnixNano()%1e6)
	create := "CREATE DATABASE " + name + " TEMPLATE template_tenure OWNER app"
	if s.server.Major() >= 15 {
		create += " STRATEGY file_copy"
	}
	s.exec(t, s.server.DSN(), create)
	t.Cleanup(func() { s.exec(t, s.server.DSN(), "DROP DATABASE "+name+" WITH (FORCE)") })
	return name
}

// examine returns the failures that the doctor finds, and the error of a node. A node that
// leads has a greater number than before.
func (s *damageSite) examine(t *testing.T, database string) (failures []string, err error) {
	t.Helper()
	b := s.backend(t, "app", database)
	defer b.Close()
	for _, f := range b.Diagnose(t.Context()) {
		if f.Severity == doctor.Failure || f.Severity == doctor.Warning && strings.HasPrefix(f.Name, "tables of ") {
			failures = append(failures, strings.TrimSpace(f.Detail+" "+f.Advice))
		}
	}
	number, err := s.lead(t, b)
	if err != nil {
		return failures, err
	}
	if number <= s.last {
		t.Errorf("Invariant 2: the number of the next term is %d; want more than %d", number, s.last)
	}
	pool := pgtest.Pool(t, s.server.DSNFor("app", database))
	defer pool.Reset()
	for _, f := range schema.Registered() {
		if err := schema.Of(b).Ensure(t.Context(), pool, f); err != nil {
			return failures, err
		}
	}
	return failures, nil
}

// sqlCommand is a statement that a text names. An error of the server may follow it.
var sqlCommand = regexp.MustCompile(`(?:GRANT|ALTER) [^;:]*[;:]`)

// commandOf returns the command that a text names: of this program, or statements.
func commandOf(text string) string {
	if strings.Contains(text, schema.RepairCommand) {
		return schema.RepairCommand
	}
	return strings.ReplaceAll(strings.Join(sqlCommand.FindAllString(text, -1), " "), ":", ";")
}

// namesSame reports whether the node's error has what the doctor found.
func namesSame(finding, err string) bool {
	return strings.Contains(err, finding) || strings.Contains(err, strings.TrimPrefix(finding, "open a session: ")) ||
		commandOf(finding) != schema.RepairCommand
}

// follow runs a command: the owner does, or the superuser if the owner may not.
func (s *damageSite) follow(t *testing.T, database, command string) error {
	t.Helper()
	if command != schema.RepairCommand {
		s.exec(t, s.server.DSNFor("postgres", database), command)
		return nil
	}
	var err error
	for _, user := range []string{"app", "postgres"} {
		b := s.backend(t, user, database)
		_, err = b.MigrateRepair(t.Context(), false)
		b.Close()
		if !errors.Is(err, dberr.ErrPrivilege) {
			break
		}
	}
	return err
}
