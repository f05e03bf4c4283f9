package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
)

const (
	makeInstallation = `INSERT INTO {installation} (mode) VALUES ('sessions');`

	// The next session inserts the row again. Its roles then wait for one lease, as after a
	// crash of the server.
	forgetServer = `DELETE FROM {server};`

	moveIncarnations = `
SELECT setval({incarnations:regclass}, m.most)
FROM (
    SELECT greatest(
        (SELECT max(incarnation) FROM {nodes}), (SELECT max(incarnation) FROM {terms}),
        (SELECT max(incarnation) FROM {history}), (SELECT max(incarnation) FROM {node_history})) AS most
) m
WHERE m.most > (SELECT last_value FROM {incarnations});`

	// A term without its number gets one beyond all earlier terms: a number is at most
	// the time of its assignment, in milliseconds.
	numberLostTerms = `
UPDATE {terms}
SET term = floor(1000 * extract(epoch FROM clock_timestamp())) + 60000
WHERE term = 0 AND node_id IS NOT NULL;`

	// The next term writes the last one into the history. Without these values, the
	// history gets no row.
	fillLostTerms = `
UPDATE {terms}
SET node_id = coalesce(node_id, '00000000-0000-0000-0000-000000000000'),
    node_name = coalesce(node_name, ''),
    incarnation = coalesce(incarnation, 0),
    acquired_at = coalesce(acquired_at, clock_timestamp())
WHERE term > 0 AND (node_id IS NULL OR node_name IS NULL OR incarnation IS NULL OR acquired_at IS NULL);`

	// Numbers of terms still in other tables.
	raiseTerms = `
UPDATE {terms} t
SET term = f.term
FROM (SELECT role, max(term) AS term FROM (%s) f GROUP BY role) f
WHERE t.role = f.role AND t.term < f.term;`

	// Roles without a row begin at the time. If the clock is behind a given number, they
	// need their row.
	readAheadTerms = `
SELECT f.role, max(f.term)
FROM (%s) f
WHERE f.role NOT IN (SELECT role FROM {terms})
GROUP BY f.role
HAVING max(f.term) >= floor(1000 * extract(epoch FROM clock_timestamp())) - 60000`

	readRoleKeys = `SELECT role, lock_key FROM {terms} ORDER BY role`
)

// mendRows mends rows and positions of sequences.
func (r *repair) mendRows(ctx context.Context, present []*schema.Feature) error {
	sql := r.on.Names.SQL
	id, err := r.installationID(ctx)
	if err != nil {
		return err
	}
	if r.nodesUnknown || r.newID || r.lost(schema.KindTable, "nodes") || r.lost(schema.KindTable, "terms") {
		if err := r.exec(ctx, false, sql(forgetServer)); err != nil {
			return err
		}
	}
	if r.newID || r.lost(schema.KindColumn, "terms.lock_key") {
		if err := r.rekeyRoles(ctx, id); err != nil {
			return err
		}
	}
	if err := r.mendTerms(ctx, present, id); err != nil {
		return err
	}
	if err := r.exec(ctx, false, sql(moveIncarnations)); err != nil {
		return err
	}
	for _, f := range present {
		for _, c := range f.Identities() {
			if err := r.exec(ctx, false, sql(c.Advance())); err != nil {
				return err
			}
		}
	}
	return nil
}

// installationID reads the id of the installation, and makes one if there is none.
func (r *repair) installationID(ctx context.Context) (id uuid.UUID, err error) {
	read := func() error { return r.tx.QueryRow(ctx, r.on.Names.SQL(ReadInstallation)).Scan(&id) }
	r.newID = r.lost(schema.KindColumn, "installation.id")
	err = read()
	if !errors.Is(err, pgx.ErrNoRows) {
		return id, err
	}
	leases, err := r.on.livingLeases(ctx, r.tx)
	if err != nil {
		return id, err
	}
	if len(leases) > 0 {
		return id, r.on.inUse(ctx, r.tx.Conn(), "repair", leases)
	}
	r.newID = true
	if err := r.exec(ctx, true, r.on.Names.SQL(makeInstallation)); err != nil {
		return id, err
	}
	return id, read()
}

// rekeyRoles writes the lock keys of all roles anew, since they depend on the id of the
// installation. A role with a separate key, not in its name, gets the key of its name:
// its candidates then name the command to record the other.
func (r *repair) rekeyRoles(ctx context.Context, id uuid.UUID) error {
	rows, _ := r.tx.Query(ctx, r.on.Names.SQL(readRoleKeys)) // its error is that of the rows
	var (
		roles, keys []string
		role, key   string
	)
	_, err := pgx.ForEachRow(rows, []any{&role, &key}, func() error {
		if wanted := keyOfName(role, id); wanted != key {
			roles, keys = append(roles, role), append(keys, wanted)
		}
		return nil
	})
	if err != nil || len(roles) == 0 {
		return err
	}
	// The trigger would acquire two locks for each role, and this transaction holds the lock of
	// the installation.
	trigger := `ALTER TABLE {terms} %s TRIGGER "{prefix}keep_terms";`
	for _, sql := range []string{
		fmt.Sprintf(trigger, "DISABLE"),
		"UPDATE {terms} t SET lock_key = k.key FROM unnest(" + literals(roles) + ", " + literals(keys) + ") AS k(role, key) WHERE t.role = k.role;",
		fmt.Sprintf(trigger, "ENABLE"),
	} {
		if err := r.exec(ctx, true, r.on.Names.SQL(sql)); err != nil {
			return err
		}
	}
	return nil
}

// literals is an array of constants. Braces in a name are no template.
func literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strings.NewReplacer("{", `\x7b`, "}", `\x7d`).Replace(schema.Literal(text))
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]::text[]"
}

// keyOfName is the lock key derived from the name of a role.
func keyOfName(role string, id uuid.UUID) string {
	if key, found := strings.CutPrefix(role, "key:"); found {
		return key
	}
	return tenure.NamedRole(role).LockKey(id).String()
}

// mendTerms keeps the numbers of terms growing: no later term has a number still known to
// the database.
func (r *repair) mendTerms(ctx context.Context, present []*schema.Feature, id uuid.UUID) error {
	known := "SELECT role, term FROM {history}"
	for _, f := range present {
		for _, table := range []string{"schedules", "processors"} {
			if slices.ContainsFunc(f.Parts, func(p schema.Part) bool { return p.Kind == schema.KindTable && p.Object == table }) {
				known += " UNION ALL SELECT role, term FROM {" + table + "}"
			}
		}
	}
	for _, sql := range []string{numberLostTerms, fmt.Sprintf(raiseTerms, known), fillLostTerms} {
		if err := r.exec(ctx, false, r.on.Names.SQL(sql)); err != nil {
			return err
		}
	}
	rows, _ := r.tx.Query(ctx, r.on.Names.SQL(fmt.Sprintf(readAheadTerms, known))) // its error is that of the rows
	var (
		statements []string
		role       string
		term       int64
	)
	_, err := pgx.ForEachRow(rows, []any{&role, &term}, func() error {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s (role, term, lock_key, node_id, node_name, incarnation, acquired_at, ended_at, end_reason) "+
			"VALUES (%s, %d, %s, '00000000-0000-0000-0000-000000000000', '', 0, clock_timestamp(), clock_timestamp(), 'crashed');",
			r.on.Names.SQL("{terms}"), schema.Literal(role), term, schema.Literal(keyOfName(role, id))))
		return nil
	})
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if err := r.exec(ctx, true, sql); err != nil {
			return err
		}
	}
	return nil
}
