package schema

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/exactly-one/tenure/dberr"
)

// Damage is a part that differs from the result of the migrations.
type Damage struct {
	Feature *Feature
	Part           // how it must look; of an unwanted part, how it looks
	Found   string // how it looks; empty if it is missing
	Extra   bool   // it must not exist
	Origin  string // a text about the other build that made the feature; empty if this one did
}

// Damages lists the faults of a feature's parts found in a database. Additional parts are
// allowed, unless they change the effect of statements.
func (n Names) Damages(f *Feature, found []Part) []Damage {
	var (
		all    []Damage
		looks  = map[[2]string]string{}
		exists = map[Part]bool{}
		known  = map[[2]string]bool{}
	)
	wanted := n.shapedFor(f)
	for _, p := range found {
		exists[p] = true
		if !slices.Contains(wanted, p) {
			looks[[2]string{p.Kind, p.Object}] = p.Shape
		}
	}
	for _, p := range wanted {
		known[[2]string{p.Kind, p.Object}] = true
		if !exists[p] {
			all = append(all, Damage{Feature: f, Part: p, Found: looks[[2]string{p.Kind, p.Object}]})
		}
	}
	for _, p := range found {
		additional := !known[[2]string{p.Kind, p.Object}] || p.Kind == KindCheck && !slices.Contains(wanted, p)
		if slices.Contains(unwanted, p.Kind) || additional && f.suffersFrom(p) {
			all = append(all, Damage{Feature: f, Part: p, Found: p.Shape, Extra: true})
		}
	}
	slices.SortStableFunc(all, func(a, b Damage) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
	return withoutConsequences(all)
}

// suffersFrom reports whether statements of Tenure cannot work with an additional part, or
// not as they must.
func (f *Feature) suffersFrom(p Part) bool {
	switch p.Kind {
	case KindColumn:
		return isRequired(p.Shape)
	case KindCheck:
		return f.Name == Core
	case KindTrigger:
		return f.Name == Core && replacesRows(p.Shape)
	}
	return false
}

// replacesRows reports whether a trigger is called before each row is written: it can change
// the row or leave it out.
func replacesRows(shape string) bool {
	const beforeRow = 3 // the bits of pg_trigger.tgtype
	_, rest, _ := strings.Cut(shape, " type ")
	number, _, _ := strings.Cut(rest, " ")
	kind, err := strconv.Atoi(number)
	return err == nil && kind&beforeRow == beforeRow && !strings.HasSuffix(shape, " disabled") && !strings.HasSuffix(shape, " on replicas only")
}

// isRequired reports whether a statement without the column cannot insert a row.
func isRequired(shape string) bool {
	return strings.Contains(shape, " NOT NULL") && !strings.Contains(shape, " DEFAULT ") && !strings.Contains(shape, " GENERATED ")
}

// withoutConsequences leaves out the parts of missing tables and views.
func withoutConsequences(all []Damage) []Damage {
	missing := map[string]bool{}
	for _, d := range all {
		if (d.Kind == KindTable || d.Kind == KindView) && d.Found == "" {
			missing[d.Object] = true
		}
	}
	return slices.DeleteFunc(all, func(d Damage) bool {
		return d.Kind != KindTable && d.Kind != KindView && missing[d.relation()]
	})
}

// relation returns the name of the part's relation.
func (d Damage) relation() string {
	end := strings.IndexAny(d.Object, ". (")
	if end < 0 || d.Kind == KindFunction || d.Kind == KindDefiner {
		return d.Object
	}
	return d.Object[:end]
}

// describe describes the fault in words.
func (n Names) describe(d Damage) string {
	what := d.Kind + " " + n.prefix + d.Object
	if d.Kind == KindFunction {
		name, _, _ := strings.Cut(d.Object, "(")
		what = d.Kind + " " + n.prefix + name
	}
	switch {
	case d.Kind == KindColumn && d.Extra:
		return what + " is not Tenure's and must have a value in each row"
	case d.Kind == KindTrigger && d.Extra:
		return what + " is not Tenure's, and can change rows or leave them out"
	case d.Extra:
		return fmt.Sprintf("%s on %s%s: %s", d.Kind, n.prefix, d.Object, d.Found)
	case d.Kind == KindCheck:
		return what + " is missing: " + d.Shape
	case d.Found == "":
		return what + " is missing"
	case d.Kind == KindFunction || d.Kind == KindView:
		return what + " was changed"
	}
	return fmt.Sprintf("%s is %q and must be %q", what, d.Found, d.Shape)
}

// RepairCommand repairs everything named by a [DamageError].
const RepairCommand = "tenure migrate repair"

// DamageError lists the differences from the result of the migrations. It matches
// dberr.ErrDamaged, or only dberr.ErrSchema if another build's migrations made it.
type DamageError struct {
	Damages []Damage
	names   Names
}

// maxNamed is how many damages an error names.
const maxNamed = 3

func (e *DamageError) Error() string {
	var named []string
	for i, d := range e.Damages {
		if i == maxNamed {
			named = append(named, fmt.Sprintf("%d more", len(e.Damages)-i))
			break
		}
		named = append(named, e.names.describe(d))
	}
	if origin := e.Damages[0].Origin; origin != "" {
		return fmt.Sprintf("%v: schema %q: %s, and it is not that of this program: %s: run a build of that kind, or end all nodes and run %s of this one",
			dberr.ErrSchema, e.names.schema, origin, strings.Join(named, "; "), RepairCommand)
	}
	text := fmt.Sprintf("%v: schema %q: %s: end all nodes and run %s", dberr.ErrDamaged, e.names.schema, strings.Join(named, "; "), RepairCommand)
	if statements := e.names.Mend(e.Damages[0]); len(e.Damages) == 1 && len(statements) == 1 && !strings.Contains(statements[0], "\n") {
		text += ", or " + statements[0]
	}
	return text
}

func (e *DamageError) Unwrap() error {
	if e.Damages[0].Origin != "" {
		return dberr.ErrSchema
	}
	return dberr.ErrDamaged
}

// CheckParts compares the parts of features with the result of the migrations. It sends
// one statement if all of them are as they must be. If a feature has a newer version than
// this program's, CheckParts checks only parts no later migration may change. The error is
// a [DamageError] if something differs.
func (n Names) CheckParts(ctx context.Context, database Querier, versions Versions, features ...*Feature) error {
	damages, err := n.ReadDamages(ctx, database, versions, features...)
	if err != nil || len(damages) == 0 {
		return err
	}
	return n.Refusal(damages)
}

// RowSecurity is an expression for whether the rows of the table with the name $1 are hidden
// from this user. Reading it would be an error.
const RowSecurity = `coalesce((
    SELECT c.relforcerowsecurity OR row_security_active(c.oid)
    FROM pg_catalog.pg_class c
    WHERE c.oid = pg_catalog.to_regclass($1) AND c.relrowsecurity), false)`

// RefuseRowSecurity returns an error if the rows of a table are hidden.
func (n Names) RefuseRowSecurity(hidden bool, table string) error {
	if !hidden {
		return nil
	}
	return n.Refusal([]Damage{{Part: Part{KindRowSecurity, table, ""}, Found: "applies to this user", Extra: true}})
}

// Refusal returns the error for damages.
func (n Names) Refusal(damages []Damage) error { return &DamageError{damages, n} }

// ReadDamages lists the damages of features with tables.
func (n Names) ReadDamages(ctx context.Context, database Querier, versions Versions, features ...*Feature) ([]Damage, error) {
	var present []*Feature
	for _, f := range features {
		if len(f.Parts) > 0 && versions[f.Name].Present >= f.Newest() { // some tests have features without parts
			present = append(present, f)
		}
	}
	digests, err := n.digests(ctx, database, present)
	if err != nil {
		return nil, err
	}
	var differ []*Feature
	for _, f := range present {
		if digests[f.Name] != n.expectedDigest(f) {
			differ = append(differ, f)
		}
	}
	if len(differ) == 0 {
		return nil, nil
	}
	found, err := n.FindParts(ctx, database, differ...)
	if err != nil {
		return nil, err
	}
	var all []Damage
	for _, f := range differ {
		damages := n.Damages(f, found[f.Name])
		if versions[f.Name].Present > f.Newest() {
			damages = slices.DeleteFunc(damages, func(d Damage) bool { return !d.isLasting() })
		}
		for i := range damages {
			damages[i].Origin = versions[f.Name].origin(f)
		}
		all = append(all, damages...)
	}
	return all, nil
}

// FencingIndex is the index on which fencing depends: without it fencing protects nothing.
const FencingIndex = "terms (role, term)"

// isLasting reports whether the part must look like this in later versions too, as long as
// this program may use them.
func (d Damage) isLasting() bool {
	return d.Extra && d.Kind != KindColumn || d.Kind == KindTable || d.Kind == KindIndex && d.Object == FencingIndex
}

// Remains reports whether the database has tables of a feature, and lists their damages.
// The version of the feature may not be recorded. Tables of another program may have one
// of the names: the tables of a feature have all of its columns in at least one table.
func (n Names) Remains(ctx context.Context, database Querier, f *Feature) (damages []Damage, remain bool, err error) {
	found, err := n.FindParts(ctx, database, f)
	if err != nil || !hasTable(f, found[f.Name]) {
		return nil, false, err
	}
	return n.Damages(f, found[f.Name]), true, nil
}

// shared are tables also created by package lease.
var shared = []string{"installation", "migrations"}

func hasTable(f *Feature, found []Part) bool {
	columns := map[string]bool{}
	for _, p := range found {
		if p.Kind == KindColumn || p.Kind == KindTable {
			columns[p.Object] = true
		}
	}
	for _, table := range f.objects() {
		if !columns[table] || slices.Contains(shared, table) {
			continue
		}
		complete := slices.ContainsFunc(f.Parts, func(p Part) bool { return p.Kind == KindTable && p.Object == table })
		for _, p := range f.Parts {
			if p.Kind == KindColumn && strings.HasPrefix(p.Object, table+".") {
				complete = complete && columns[p.Object]
			}
		}
		if complete {
			return true
		}
	}
	return false
}
