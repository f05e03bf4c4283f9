package schema

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Part is one object in the database that Tenure relies on, with its definition. The parts
// of a feature are in the file parts.tsv beside its migrations. A test writes the file
// from a new schema: it has every new column.
type Part struct {
	Kind   string // one of the kinds below
	Object string // without the prefix: nodes, nodes.id, nodes (incarnation)
	Shape  string
}

// The kinds of parts, in the order of their creation.
const (
	KindRowSecurity = "row security" // only where it is on
	KindRule        = "rule"         // only where there is one
	KindChild       = "child table"  // only where there is one
	KindSequence    = "sequence"
	KindTable       = "table"
	KindColumn      = "column"
	KindCheck       = "check"
	KindIndex       = "index"
	KindFunction    = "function"
	KindDefiner     = "owner of function" // only where it lacks a privilege
	KindView        = "view"
	KindTrigger     = "trigger"
)

var kinds = []string{
	KindRowSecurity, KindRule, KindChild, KindSequence, KindTable, KindColumn, KindCheck, KindIndex, KindFunction, KindDefiner, KindView,
	KindTrigger,
}

// unwanted are the kinds that no schema of Tenure has. Other kinds may have more parts
// than the migrations made: an operator may add columns, indexes and triggers; see suffersFrom.
var unwanted = []string{KindRowSecurity, KindRule, KindChild, KindDefiner}

func (p Part) line() string { return p.Kind + "\t" + p.Object + "\t" + p.Shape }

// Parts reads the file parts.tsv in a folder of migrations. It panics if the file is
// malformed: it is embedded.
func Parts(files embed.FS, folder string) []Part {
	text, err := files.ReadFile(folder + "/parts.tsv")
	if err != nil {
		panic(err)
	}
	parts, err := ParseParts(string(text))
	if err != nil {
		panic(err)
	}
	return parts
}

// ParseParts reads a line for each part.
func ParseParts(text string) ([]Part, error) {
	var parts []Part
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || !slices.Contains(kinds, fields[0]) {
			return nil, fmt.Errorf("a part must be a kind, an object and a shape, separated by tabs: %q", line)
		}
		parts = append(parts, Part{fields[0], fields[1], fields[2]})
	}
	return parts, nil
}

// TemplateBody replaces the body of a function of the migrations.
const TemplateBody = " body of the migration"

// shapedFor returns the parts of a feature for names: functions have digests of their bodies.
func (n Names) shapedFor(f *Feature) []Part {
	parts := slices.Clone(f.Parts)
	for i, p := range parts {
		if shape, found := strings.CutSuffix(p.Shape, TemplateBody); found {
			name, _, _ := strings.Cut(p.Object, "(")
			sum := sha256.Sum256([]byte(n.SQL(f.body(name))))
			parts[i].Shape = shape + " body " + hex.EncodeToString(sum[:])
		}
	}
	return parts
}

// expected are the computed digests, by expectation.
var expected sync.Map

type expectation struct {
	names   Names
	feature *Feature
}

// expectedDigest is the digest of an undamaged feature.
func (n Names) expectedDigest(f *Feature) string {
	key := expectation{n, f}
	if known, found := expected.Load(key); found {
		return known.(string)
	}
	code := digest(n.shapedFor(f))
	expected.Store(key, code)
	return code
}

// digest is the database's answer for parts like these.
func digest(parts []Part) string {
	lines := make([]string, len(parts))
	for i, p := range parts {
		lines[i] = p.line()
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// findParts lists the parts of relations and functions: $3 and $4 are their names and
// features, $1 and $2 schema and prefix. The texts depend on settings of every Tenure
// connection. Names of Tenure's objects are written without schema and prefix.
const findParts = `
WITH wanted AS MATERIALIZED (
    SELECT w.name, w.feature, ($2::text || w.name)::name AS full_name
    FROM unnest($3::text[], $4::text[]) AS w(name, feature)
), space AS MATERIALIZED (
    SELECT oid FROM pg_namespace WHERE nspname = $1::text
), own AS MATERIALIZED (
    SELECT c.*, w.name, w.feature
    FROM wanted w
    CROSS JOIN space
    JOIN pg_class c ON c.relnamespace = space.oid AND c.relname = w.full_name
), parts AS (
    SELECT o.feature, CASE o.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' ELSE 'table' END AS kind, o.name AS object,
        concat_ws(' ',
            CASE o.relpersistence WHEN 'p' THEN 'permanent' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END,
            CASE o.relkind
                WHEN 'r' THEN 'table'
                WHEN 'S' THEN (SELECT concat_ws(' ', format_type(s.seqtypid, NULL), 'by', s.seqincrement, 'from', s.seqmin, 'to', s.seqmax, CASE WHEN s.seqcycle THEN 'cycling' END)
                    FROM pg_sequence s WHERE s.seqrelid = o.oid)
                WHEN 'v' THEN btrim(regexp_replace(replace(replace(replace(pg_get_viewdef(o.oid),
                    coalesce((SELECT n.oid::regclass::text FROM own n WHERE n.name = 'nodes'), ' '), '{nodes}'),
                    coalesce((SELECT n.oid::regclass::text FROM own n WHERE n.name = 'terms'), ' '), '{terms}'),
                    quote_ident($2 || 'nodes') || '.', ''), '\s+', ' ', 'g')) -- only older servers write it
                ELSE 'of the kind ' || o.relkind::text
            END,
            CASE WHEN o.relispartition THEN 'partition' END,
            CASE WHEN o.relkind = 'r' AND o.relreplident = 'n' AND EXISTS (SELECT FROM pg_publication WHERE pubupdate OR pubdelete) THEN 'without replica identity' END,
            (SELECT 'with the access method ' || a.amname FROM pg_am a WHERE a.oid = o.relam AND a.amname <> 'heap')) AS shape
    FROM own o
    UNION ALL
    SELECT o.feature, 'row security', o.name, CASE WHEN o.relforcerowsecurity THEN 'forced' ELSE 'applies to this user' END
    FROM own o
    WHERE o.relrowsecurity AND (o.relforcerowsecurity OR row_security_active(o.oid))
    UNION ALL
    SELECT o.feature, 'rule', o.name, quote_ident(r.rulename)
    FROM own o
    JOIN pg_rewrite r ON r.ev_class = o.oid AND r.ev_enabled <> 'D'
    WHERE o.relhasrules AND o.relkind <> 'v'
    UNION ALL
    SELECT o.feature, 'child table', o.name, i.inhrelid::regclass::text
    FROM own o
    JOIN pg_inherits i ON i.inhparent = o.oid
    WHERE o.relhassubclass
    UNION ALL
    SELECT o.feature, 'column', o.name || '.' || a.attname,
        concat_ws(' ', format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation END,
            CASE WHEN a.attnotnull THEN 'NOT NULL' END,
            CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END,
            CASE WHEN a.attgenerated <> '' THEN 'GENERATED' ELSE 'DEFAULT' END || ' ' || pg_get_expr(d.adbin, d.adrelid))
    FROM own o
    JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON a.atthasdef AND d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE o.relkind <> 'S'
    UNION ALL
    SELECT o.feature, 'check', o.name, pg_get_constraintdef(c.oid)
    FROM own o
    JOIN pg_constraint c ON c.conrelid = o.oid AND c.contype = 'c'
    WHERE o.relchecks > 0
    UNION ALL
    SELECT o.feature, 'index',
        o.name || ' (' || (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, false), ', ' ORDER BY k) FROM generate_series(1, i.indnkeyatts) k) || ')',
        concat_ws(' ', CASE WHEN i.indisunique THEN 'unique' ELSE 'not unique' END,
            (SELECT a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = i.indexrelid),
            'where ' || pg_get_expr(i.indpred, i.indrelid),
            CASE WHEN NOT i.indimmediate THEN 'deferrable as ' || (SELECT quote_ident(c.conname) FROM pg_constraint c WHERE c.conindid = i.indexrelid LIMIT 1) END,
            CASE WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN 'invalid as ' || i.indexrelid::regclass END)
    FROM own o
    JOIN pg_index i ON i.indrelid = o.oid
    WHERE o.relhasindex
    UNION ALL
    SELECT o.feature, 'trigger', o.name || '.' || CASE WHEN starts_with(t.tgname, $2) THEN substr(t.tgname, length($2) + 1) ELSE t.tgname END,
        concat_ws(' ',
            (SELECT CASE WHEN p.pronamespace = o.relnamespace AND starts_with(p.proname, $2) THEN substr(p.proname, length($2) + 1) ELSE p.oid::regproc::text END
                FROM pg_proc p WHERE p.oid = t.tgfoid),
            'type', t.tgtype,
            'of ' || nullif((SELECT string_agg(a.attname, ', ' ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = o.oid AND a.attnum = ANY (t.tgattr::int2[])), ''),
            'when ' || substring(pg_get_triggerdef(t.oid) FROM ' WHEN (\(.*\)) EXECUTE '),
            CASE t.tgenabled WHEN 'D' THEN 'disabled' WHEN 'R' THEN 'on replicas only' END)
    FROM own o
    JOIN pg_trigger t ON t.tgrelid = o.oid AND NOT t.tgisinternal
    WHERE o.relhastriggers
    UNION ALL
    SELECT w.feature, CASE k.kind WHEN 1 THEN 'function' ELSE 'owner of function' END, w.name || '(' || oidvectortypes(p.proargtypes) || ')',
        CASE k.kind WHEN 1 THEN concat_ws(' ',
            'returns', pg_get_function_result(p.oid), 'names', array_to_string(p.proargnames, ','), 'language', l.lanname, 'volatility', p.provolatile,
            CASE WHEN p.proisstrict THEN 'strict' END, CASE WHEN p.prosecdef THEN 'definer' END,
            'with ' || array_to_string(p.proconfig, '; '),
            'body', coalesce(pg_get_function_sqlbody(p.oid), encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex')))
        ELSE quote_ident(pg_get_userbyid(p.proowner))
        END
    FROM wanted w
    CROSS JOIN space
    JOIN pg_proc p ON p.pronamespace = space.oid AND p.proname = w.full_name
    JOIN pg_language l ON l.oid = p.prolang
    CROSS JOIN generate_series(1, 2) AS k(kind)
    WHERE k.kind = 1
        OR p.prosecdef AND NOT (has_schema_privilege(p.proowner, space.oid, 'USAGE') AND coalesce((
            SELECT bool_and(CASE o.name WHEN 'nodes' THEN has_table_privilege(p.proowner, o.oid, 'SELECT')
                ELSE has_table_privilege(p.proowner, o.oid, 'INSERT') END)
            FROM own o
            WHERE o.name IN ('nodes', 'node_history')), true))
)`

const (
	listParts   = findParts + ` SELECT feature, kind, object, shape FROM parts`
	digestParts = findParts + `
SELECT feature, encode(sha256(convert_to(string_agg(kind || E'\t' || object || E'\t' || shape, E'\n'
    ORDER BY (kind || E'\t' || object || E'\t' || shape) COLLATE "C"), 'UTF8')), 'hex')
FROM parts
GROUP BY feature`
)

// objectsOf returns the names of all relations and functions of features, and the
// feature of each.
func objectsOf(features []*Feature) (names, of []string) {
	for _, f := range features {
		for _, name := range f.objects() {
			names, of = append(names, name), append(of, f.Name)
		}
	}
	return names, of
}

// FindParts reads the features' parts in the database.
func (n Names) FindParts(ctx context.Context, database Querier, features ...*Feature) (map[string][]Part, error) {
	objects, of := objectsOf(features)
	rows, _ := database.Query(ctx, listParts, n.schema, n.prefix, objects, of) // rows reports its error
	var (
		found   = map[string][]Part{}
		feature string
		p       Part
	)
	_, err := pgx.ForEachRow(rows, []any{&feature, &p.Kind, &p.Object, &p.Shape}, func() error {
		found[feature] = append(found[feature], p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read how the tables look: %w", err)
	}
	return found, nil
}

// PartsQuery returns the statement of [Names.CheckParts] and its parameters.
func (n Names) PartsQuery(features ...*Feature) (sql string, args []any) {
	objects, of := objectsOf(features)
	return digestParts, []any{n.schema, n.prefix, objects, of}
}

// digests reads the digest of the parts of each feature.
func (n Names) digests(ctx context.Context, database Querier, features []*Feature) (map[string]string, error) {
	sql, args := n.PartsQuery(features...)
	rows, _ := database.Query(ctx, sql, args...) // rows reports its error
	var (
		all           = map[string]string{}
		feature, code string
	)
	_, err := pgx.ForEachRow(rows, []any{&feature, &code}, func() error {
		all[feature] = code
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check how the tables look: %w", err)
	}
	return all, nil
}
