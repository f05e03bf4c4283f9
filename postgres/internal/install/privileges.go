package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

type privilege = schema.Privilege

// nodePrivileges are the privileges of a node's database user.
var nodePrivileges = []privilege{
	{Allowed: "USAGE", Kind: "SCHEMA", Object: "{schema}"},
	schema.OnTable("SELECT", "{migrations}"),
	schema.OnTable("SELECT", "{installation}"),
	schema.OnTable("SELECT, INSERT", "{server}"),
	schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{nodes}"),
	schema.OnTable("SELECT, INSERT, UPDATE", "{terms}"),
	schema.OnTable("SELECT, INSERT", "{history}"),
	schema.OnTable("SELECT", "{node_history}"),
	schema.OnTable("SELECT, INSERT, DELETE", "{requests}"),
	schema.OnTable("SELECT", "{leaders}"),
	schema.OnTable("SELECT, INSERT, UPDATE", "{spreads}"),
	schema.OnTable("SELECT", "{autoscaling}"),
	{Allowed: "USAGE", Kind: "SEQUENCE", Object: "{incarnations}"},
	{Allowed: "SELECT, USAGE", Kind: "SEQUENCE", Object: "{membership}"},
	{Allowed: "SELECT, USAGE", Kind: "SEQUENCE", Object: "{releases}"},
	{Allowed: "EXECUTE", Kind: "FUNCTION", Object: "{term_end}(timestamptz, integer, timestamptz, timestamptz)"},
	{Allowed: "EXECUTE", Kind: "FUNCTION", Object: "{last_sign}(timestamptz, timestamptz)"},
	{Allowed: "EXECUTE", Kind: "FUNCTION", Object: "{take}(text[], bigint[], integer[], integer[], bigint[], integer[], uuid, text[], integer, integer, text, text, boolean, boolean, boolean, integer[], timestamptz[], integer)"},
	{Allowed: "EXECUTE", Kind: "FUNCTION", Object: "{ended}(integer, integer[])"},
	{Allowed: "EXECUTE", Kind: "FUNCTION", Object: "{watch}(integer, integer, integer, bigint, integer, integer)"},
	{Allowed: "EXECUTE", Kind: "FUNCTION", Object: "pg_catalog.pg_terminate_backend(integer, bigint)"},
}

// applicationPrivileges are the privileges of an application's user to fence its
// transactions: FOR KEY SHARE needs UPDATE on some column.
var applicationPrivileges = []privilege{
	{Allowed: "USAGE", Kind: "SCHEMA", Object: "{schema}"},
	schema.OnTable("SELECT", "{terms}"),
	schema.OnTable("UPDATE (fence)", "{terms}"),
}

// workPrivileges are needed to run the statements of features, beyond the privileges of
// an application and on the features' tables.
var workPrivileges = []privilege{
	schema.OnTable("SELECT", "{migrations}"),
	schema.OnTable("SELECT", "{leaders}"),
	schema.OnTable("SELECT", "{server}"),
	schema.OnTable("SELECT", "{nodes}"),
	schema.OnTable("SELECT", "{history}"),
	schema.OnTable("SELECT", "{node_history}"),
}

// compactionPrivileges are needed to keep the history short, beyond the privileges of an
// application and on the features' tables: FOR UPDATE, too, needs UPDATE on some column.
var compactionPrivileges = []privilege{
	schema.OnTable("SELECT", "{migrations}"),
	schema.OnTable("SELECT, DELETE", "{history}"),
	schema.OnTable("UPDATE (incarnation)", "{history}"),
	schema.OnTable("SELECT, DELETE", "{node_history}"),
	schema.OnTable("UPDATE (id)", "{node_history}"),
}

// NodeGrants is the method of the backend with this name.
func (i *Installation) NodeGrants(user string) string { return i.grants(nodePrivileges, user) }

// ApplicationGrants is the method of the backend with this name.
func (i *Installation) ApplicationGrants(user string, nodes ...string) string {
	sql := i.grants(applicationPrivileges, user)
	for _, node := range nodes {
		sql += letTerminate(user, node)
	}
	return sql
}

// letTerminate is a script to grant the rights of an application's user to a node's user
// on any version of the server. From version 16 on, the node cannot act as the other
// user.
func letTerminate(user, node string) string {
	return fmt.Sprintf(`DO $grant$
BEGIN
    IF current_setting('server_version_num')::int >= 160000 THEN
        EXECUTE %s;
    ELSE
        EXECUTE %s;
    END IF;
END
$grant$;
`, schema.Literal(GrantTermination(user, node, 160000)), schema.Literal(GrantTermination(user, node, 0)))
}

// WorkGrants is the method of the backend with this name.
func (i *Installation) WorkGrants(user string, features ...string) (string, error) {
	return i.featureGrants(user, workPrivileges, features, func(f *schema.Feature) []privilege { return f.Work })
}

// CompactionGrants is the method of the backend with this name.
func (i *Installation) CompactionGrants(user string, features ...string) (string, error) {
	return i.featureGrants(user, compactionPrivileges, features, func(f *schema.Feature) []privilege { return f.Compaction })
}

func (i *Installation) featureGrants(user string, base []privilege, names []string, of func(*schema.Feature) []privilege) (string, error) {
	features, err := findFeatures(names)
	if err != nil {
		return "", err
	}
	privileges := slices.Concat(applicationPrivileges, base)
	for _, f := range features {
		privileges = append(privileges, of(f)...)
	}
	return i.grants(privileges, user), nil
}

func (i *Installation) grants(privileges []privilege, user string) string {
	var all strings.Builder
	for _, p := range privileges {
		fmt.Fprintf(&all, "GRANT %s ON %s %s TO %s;\n", p.Allowed, p.Kind, i.Names.SQL(p.Object), pgx.Identifier{user}.Sanitize())
	}
	return all.String()
}

// LackingPrivileges returns the numbers of the user's missing privileges.
const LackingPrivileges = `
SELECT p.number
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS p(allowed, kind, object, number)
WHERE NOT CASE p.kind
    WHEN 'SCHEMA' THEN has_schema_privilege(p.object, p.allowed)
    WHEN 'TABLE' THEN has_table_privilege(p.object, p.allowed)
    WHEN 'SEQUENCE' THEN has_sequence_privilege(p.object, p.allowed)
    WHEN 'FUNCTION' THEN has_function_privilege(p.object, p.allowed)
END
ORDER BY p.number`

// OtherSiblings reports whether other users run nodes.
//
// Whether a backend with the process id of a node belongs to another user, whose rights
// this user does not have. It does a fraction of the work of the next statement, and most
// nodes need not run the latter.
const OtherSiblings = `
SELECT EXISTS (
    SELECT
    FROM pg_stat_get_activity(NULL::integer) a
    JOIN {nodes} n ON n.pid = a.pid
    WHERE NOT pg_has_role(a.usesysid, 'USAGE')
)`

// Users of nodes with backends this user may not see and terminate. The node lock proves
// two things: the backend belongs to a node, since the start of other users' backends is
// hidden, and the node is alive, whatever its status.
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

// CheckPrivileges names every missing privilege of a node's user.
func (i *Installation) CheckPrivileges(ctx context.Context, conn link.Connection) error {
	missing, err := i.MissingPrivileges(ctx, conn)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: run as the owner of the schema or a superuser: %s", dberr.ErrPrivilege, strings.Join(missing, " "))
	}
	return nil
}

// RequiredPrivileges returns the privileges of a node's user one by one, and the
// parameters of LackingPrivileges, the statement for missing ones.
func (i *Installation) RequiredPrivileges() (each []schema.Privilege, args []any) {
	var allowed, kind, named []string
	for _, p := range nodePrivileges {
		for one := range strings.SplitSeq(p.Allowed, ", ") {
			object := i.Names.SQL(p.Object)
			each = append(each, privilege{Allowed: one, Kind: p.Kind, Object: object})
			if p.Kind == "SCHEMA" {
				object = i.Names.Schema // the function takes the name unquoted
			}
			allowed, kind, named = append(allowed, one), append(kind, p.Kind), append(named, object)
		}
	}
	return each, []any{allowed, kind, named}
}

// MissingPrivileges returns the GRANT statements for a node's user.
func (i *Installation) MissingPrivileges(ctx context.Context, conn link.Connection) ([]string, error) {
	var missing []string
	user := pgx.Identifier{conn.Config().User}.Sanitize()
	each, args := i.RequiredPrivileges()
	rows, err := conn.Query(ctx, LackingPrivileges, args...)
	if err == nil {
		var numbers []int
		if numbers, err = pgx.CollectRows(rows, pgx.RowTo[int]); err == nil {
			for _, number := range numbers {
				p := each[number-1]
				missing = append(missing, fmt.Sprintf("GRANT %s ON %s %s TO %s;", p.Allowed, p.Kind, p.Object, user))
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("check privileges: %w", err)
	}
	if len(missing) > 0 { // the next query would fail
		return missing, nil
	}

	return i.missingMemberships(ctx, conn, user)
}

// missingMemberships returns the GRANT statements for the users of other nodes, if this
// node could not end their sessions.
func (i *Installation) missingMemberships(ctx context.Context, conn link.Connection, user string) ([]string, error) {
	var others bool
	err := conn.QueryRow(ctx, i.Names.SQL(OtherSiblings)).Scan(&others)
	if err == nil && !others {
		return nil, nil
	}
	var users []string
	if err == nil {
		var rows pgx.Rows
		if rows, err = conn.Query(ctx, i.Names.SQL(strangeSiblings)); err == nil {
			users, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("check siblings: %w", err)
	}
	var missing []string
	for _, sibling := range users {
		missing = append(missing, fmt.Sprintf("GRANT %s TO %s;", pgx.Identifier{sibling}.Sanitize(), user))
	}
	return missing, nil
}

// GrantTermination lets a node's user terminate the backends of another user. From
// version 16 on, the statement does not let the node act as the other user.
func GrantTermination(user, node string, version int) string {
	sql := fmt.Sprintf("GRANT %s TO %s", pgx.Identifier{user}.Sanitize(), pgx.Identifier{node}.Sanitize())
	if version >= 160000 {
		sql += " WITH INHERIT TRUE, SET FALSE"
	}
	return sql
}
