package diagnosis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/postgres/internal/install"
)

// Users with a right to lock rows of the table of terms, and so to delay a term, although
// this user may not terminate their backends. A superuser's can only be terminated by a
// superuser, so superusers are left out. A member can become each of its roles.
const readUnendableLockers = `
WITH able AS MATERIALIZED (
    SELECT r.oid
    FROM pg_roles r
    WHERE NOT r.rolsuper
        AND (
            has_table_privilege(r.oid, {terms:regclass}, 'UPDATE, DELETE, TRUNCATE')
            OR has_any_column_privilege(r.oid, {terms:regclass}, 'UPDATE')
        )
)
SELECT
    u.rolname::text,
    pg_has_role(u.oid, (SELECT c.relowner FROM pg_class c WHERE c.oid = {terms:regclass}), 'MEMBER'),
    current_setting('server_version_num')::int
FROM pg_roles u
WHERE u.rolcanlogin
    AND NOT u.rolsuper
    AND EXISTS (SELECT FROM able a WHERE a.oid = u.oid OR pg_has_role(u.oid, a.oid, 'MEMBER'))
    AND has_database_privilege(u.oid, current_database(), 'CONNECT')
    AND NOT pg_has_role(u.oid, 'USAGE')
    AND NOT pg_has_role('pg_signal_backend', 'USAGE')
ORDER BY u.rolname`

// RowLocksFinding is the name of the finding of rowLocks.
const RowLocksFinding = "row locks"

// rowLocks checks whether this user may terminate every transaction in the way of a
// failover.
func (d *diagnosis) rowLocks(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, d.Names.SQL(readUnendableLockers))
	if err != nil {
		return fmt.Errorf("read who can lock the rows of roles: %w", err)
	}
	var (
		user           string
		owner          bool
		version        int
		users, advices []string
		node           = conn.Config().User
	)
	_, err = pgx.ForEachRow(rows, []any{&user, &owner, &version}, func() error {
		users = append(users, user)
		if owner { // nodes need not have the rights of the owner
			advices = append(advices, fmt.Sprintf("ALTER ROLE %s NOLOGIN, or %s;",
				pgx.Identifier{user}.Sanitize(), install.GrantTermination("pg_signal_backend", node, version)))
			return nil
		}
		advices = append(advices, install.GrantTermination(user, node, version)+";")
		return nil
	})
	if err != nil {
		return fmt.Errorf("read who can lock the rows of roles: %w", err)
	}
	if len(users) == 0 {
		d.add(RowLocksFinding, doctor.OK, "nodes may terminate every transaction that can hold up a failover, except a superuser's", "")
		return nil
	}
	d.add(RowLocksFinding, doctor.Warning, fmt.Sprintf("%s can hold up a failover for as long as a transaction is open: this user may not terminate it",
		strings.Join(users, ", ")), strings.Join(advices, " "))
	return nil
}

// blockedRoles names the transactions in the way of terms now.
func (d *diagnosis) blockedRoles(ctx context.Context) error {
	holders, err := d.Records.Holders(ctx)
	if err != nil {
		return err
	}
	var texts, advices []string
	now := time.Now()
	for _, h := range holders {
		for _, b := range h.Blockers {
			texts = append(texts, fmt.Sprintf("%s waits for %s", h.Role, describeBlocker(b, now)))
			if b.Advice != "" {
				advices = append(advices, b.Advice+";")
			}
		}
	}
	if len(texts) == 0 {
		d.add("blocked roles", doctor.OK, "no transaction keeps a term from beginning", "")
		return nil
	}
	d.add("blocked roles", doctor.Warning, strings.Join(texts, "; "), strings.Join(advices, " "))
	return nil
}

// describeBlocker names a transaction with its age.
func describeBlocker(b history.Blocker, now time.Time) string {
	text := b.String()
	if !b.Since.IsZero() {
		text += fmt.Sprintf(", open for %s", printable.Age(now.Sub(b.Since)))
	}
	return text
}
