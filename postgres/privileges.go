package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// privilege is something that a database user must be allowed to do.
type privilege struct {
	allowed string // separated by commas
	kind    string // of object: SCHEMA, TABLE, SEQUENCE or FUNCTION
	object  string
}

// nodePrivileges are those of a node's database user.
var nodePrivileges = []privilege{
	{"USAGE", "SCHEMA", "{schema}"},
	{"SELECT", "TABLE", "{migrations}"},
	{"SELECT", "TABLE", "{installation}"},
	{"SELECT", "TABLE", "{mode}"},
	{"SELECT, INSERT", "TABLE", "{server}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{nodes}"},
	{"SELECT, INSERT, UPDATE", "TABLE", "{terms}"},
	{"SELECT, INSERT", "TABLE", "{history}"},
	{"SELECT", "TABLE", "{node_history}"},
	{"SELECT, INSERT, DELETE", "TABLE", "{requests}"},
	{"SELECT", "TABLE", "{leaders}"},
	{"SELECT, INSERT, UPDATE", "TABLE", "{spreads}"},
	{"SELECT", "TABLE", "{autoscaling}"},
	{"USAGE", "SEQUENCE", "{incarnations}"},
	{"SELECT, USAGE", "SEQUENCE", "{membership}"},
	{"EXECUTE", "FUNCTION", "{watch}(integer, integer, integer, bigint, integer, integer)"},
	{"EXECUTE", "FUNCTION", "pg_catalog.pg_terminate_backend(integer, bigint)"},
}

// applicationPrivileges are those of an application's user that fences its
// transactions: FOR KEY SHARE needs UPDATE on some column.
var applicationPrivileges = []privilege{
	{"USAGE", "SCHEMA", "{schema}"},
	{"SELECT", "TABLE", "{terms}"},
	{"UPDATE (fence)", "TABLE", "{terms}"},
}

// workPrivileges are those of the database user under which processors and
// schedules do their own statements, beyond those of an application.
var workPrivileges = []privilege{
	{"SELECT", "TABLE", "{migrations}"},
	{"SELECT", "TABLE", "{leaders}"},
	{"SELECT", "TABLE", "{server}"},
	{"SELECT, INSERT", "TABLE", "{events}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{processors}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{dead_letters}"},
	{"SELECT, INSERT, DELETE", "TABLE", "{changes}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{schedules}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{runs}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{samples}"},
	{"SELECT", "TABLE", "{nodes}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{alert_rules}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{alert_states}"},
	{"SELECT, INSERT, UPDATE, DELETE", "TABLE", "{alert_notifications}"},
	{"SELECT", "TABLE", "{history}"},
	{"SELECT", "TABLE", "{node_history}"},
	{"SELECT", "TABLE", "{term_days}"},
	{"SELECT", "TABLE", "{node_days}"},
	{"SELECT", "TABLE", "{run_days}"},
	{"SELECT", "TABLE", "{sample_days}"},
}

// compactionPrivileges are those of the database user that keeps the history
// short, beyond those of an application: FOR UPDATE, too, needs UPDATE on some
// column.
var compactionPrivileges = []privilege{
	{"SELECT, DELETE", "TABLE", "{history}"},
	{"UPDATE (incarnation)", "TABLE", "{history}"},
	{"SELECT, DELETE", "TABLE", "{node_history}"},
	{"UPDATE (id)", "TABLE", "{node_history}"},
	{"SELECT, DELETE", "TABLE", "{runs}"},
	{"UPDATE (id)", "TABLE", "{runs}"},
	{"SELECT, DELETE", "TABLE", "{changes}"},
	{"UPDATE (id)", "TABLE", "{changes}"},
	{"SELECT, INSERT, UPDATE", "TABLE", "{term_days}"},
	{"SELECT, INSERT, UPDATE", "TABLE", "{node_days}"},
	{"SELECT, INSERT, UPDATE", "TABLE", "{run_days}"},
	{"SELECT, DELETE", "TABLE", "{samples}"},
	{"SELECT, INSERT, UPDATE", "TABLE", "{sample_days}"},
}

// NodeGrants returns the GRANT statements for a database user under which nodes run
// and which does not own the schema.
func (b *Backend) NodeGrants(user string) string { return b.grants(nodePrivileges, user) }

// ApplicationGrants returns the GRANT statements for a database user of an
// application that fences its transactions with [InTx] or [Fence] and runs no
// node.
func (b *Backend) ApplicationGrants(user string) string {
	return b.grants(applicationPrivileges, user)
}

// WorkGrants returns the GRANT statements for the database user of the pool that
// processors, schedules, the event log, samples and alerts use.
func (b *Backend) WorkGrants(user string) string {
	return b.grants(append(slices.Clone(applicationPrivileges), workPrivileges...), user)
}

// CompactionGrants returns the GRANT statements for the database user of the pool
// that package retention uses.
func (b *Backend) CompactionGrants(user string) string {
	return b.grants(append(slices.Clone(applicationPrivileges), compactionPrivileges...), user)
}

func (b *Backend) grants(privileges []privilege, user string) string {
	var all strings.Builder
	for _, p := range privileges {
		fmt.Fprintf(&all, "GRANT %s ON %s %s TO %s;\n", p.allowed, p.kind, b.names.sql(p.object), pgx.Identifier{user}.Sanitize())
	}
	return all.String()
}

const lackingPrivileges = `
SELECT p.number
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS p(allowed, kind, object, number)
WHERE NOT CASE p.kind
    WHEN 'SCHEMA' THEN has_schema_privilege(p.object, p.allowed)
    WHEN 'TABLE' THEN has_table_privilege(p.object, p.allowed)
    WHEN 'SEQUENCE' THEN has_sequence_privilege(p.object, p.allowed)
    WHEN 'FUNCTION' THEN has_function_privilege(p.object, p.allowed)
END
ORDER BY p.number`

// Users of nodes whose backends this user may not see and end. That a
// backend is a node's is proven by its node lock, since the start of other
// users' backends is hidden; so is that the node lives, whatever its status.
const strangeSiblings = `
SELECT DISTINCT a.usename::text
FROM {nodes} n
JOIN pg_locks l ON l.pid = n.pid
    AND l.locktype = 'advisory'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.objsubid = 2
    AND l.objid = n.incarnation::oid
    AND l.granted
JOIN pg_stat_activity a ON a.pid = n.pid
JOIN pg_roles r ON r.oid = a.usesysid
WHERE NOT pg_has_role(a.usesysid, 'USAGE')
    AND (
        r.rolsuper
        OR NOT pg_has_role('pg_signal_backend', 'USAGE')
        OR NOT pg_has_role('pg_read_all_stats', 'USAGE')
    )
ORDER BY 1`

// checkPrivileges names every privilege that a node's user lacks.
func (b *Backend) checkPrivileges(ctx context.Context, conn *pgx.Conn) error {
	missing, err := b.missingPrivileges(ctx, conn)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: run as the owner of the schema or a superuser: %s", tenure.ErrPrivilege, strings.Join(missing, " "))
	}
	return nil
}

// missingPrivileges returns the GRANT statements that a node's user needs.
func (b *Backend) missingPrivileges(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	var (
		each                 []privilege
		allowed, kind, named []string
	)
	for _, p := range nodePrivileges {
		for one := range strings.SplitSeq(p.allowed, ", ") {
			object := b.names.sql(p.object)
			each = append(each, privilege{one, p.kind, object})
			if p.kind == "SCHEMA" {
				object = b.config.Schema // the function takes the name unquoted
			}
			allowed, kind, named = append(allowed, one), append(kind, p.kind), append(named, object)
		}
	}
	var missing []string
	user := pgx.Identifier{conn.Config().User}.Sanitize()

	rows, err := conn.Query(ctx, lackingPrivileges, allowed, kind, named)
	if err == nil {
		var numbers []int
		if numbers, err = pgx.CollectRows(rows, pgx.RowTo[int]); err == nil {
			for _, number := range numbers {
				p := each[number-1]
				missing = append(missing, fmt.Sprintf("GRANT %s ON %s %s TO %s;", p.allowed, p.kind, p.object, user))
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("check privileges: %w", err)
	}
	if len(missing) > 0 { // the next question could not be asked
		return missing, nil
	}

	rows, err = conn.Query(ctx, b.names.sql(strangeSiblings))
	if err == nil {
		var users []string
		if users, err = pgx.CollectRows(rows, pgx.RowTo[string]); err == nil {
			for _, sibling := range users {
				missing = append(missing, fmt.Sprintf("GRANT %s TO %s;", pgx.Identifier{sibling}.Sanitize(), user))
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("check siblings: %w", err)
	}
	return missing, nil
}

// The index by which fencing stands: exactly (role, term), unique, valid, over
// all rows, and checked at once.
const fencingIndex = `
SELECT EXISTS (
    SELECT
    FROM pg_index i
    WHERE i.indrelid = {terms:regclass}
        AND i.indisunique
        AND i.indimmediate
        AND i.indisvalid
        AND i.indpred IS NULL
        AND i.indexprs IS NULL
        AND ARRAY(
            SELECT a.attname::text
            FROM pg_attribute a
            WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
            ORDER BY 1
        ) = ARRAY['role', 'term']
)`

// checkIndex refuses a schema without the index that makes the term a key
// column: without it, fenced transactions do not hold off the next term.
func (b *Backend) checkIndex(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, b.names.sql(fencingIndex)).Scan(&there); err != nil {
		return fmt.Errorf("check the index: %w", err)
	}
	if !there {
		return fmt.Errorf("%w: the unique index on (role, term) is missing, and fencing protects nothing without it: run %s",
			tenure.ErrSchema, b.names.sql(`ALTER TABLE {terms} ADD CONSTRAINT "{prefix}terms_role_term_key" UNIQUE (role, term);`))
	}
	return nil
}
