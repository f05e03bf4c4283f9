package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// Up brings features up to date in a transaction of the caller's.
func (n Names) Up(ctx context.Context, tx pgx.Tx, features ...*Feature) error {
	versions, err := n.Versions(ctx, tx)
	if err != nil {
		return err
	}
	if versions == nil {
		if _, err := tx.Exec(ctx, n.SQL(CreateVersions)); err != nil {
			return err
		}
	}
	for _, f := range features {
		present := versions[f.Name].Present
		if present < f.Newest() {
			if err := versions[f.Name].refuseAnother(f); err != nil {
				return err
			}
		}
		for i := present; i < f.Newest(); i++ {
			if _, err := tx.Exec(ctx, n.SQL(f.Steps[i].Up)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, n.SQL(RecordVersion), f.Name, i+1, f.Steps[i].UsableFrom, f.Steps[i].Digest()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Down undoes steps of a feature in a transaction of the caller's until it has a version.
// An error matches dberr.ErrSchema if this program does not know how, and
// tenure.ErrInvalidConfig if another feature needs the removed tables.
func (n Names) Down(ctx context.Context, tx pgx.Tx, f *Feature, version int) error {
	versions, err := n.Versions(ctx, tx)
	if err != nil {
		return err
	}
	present := versions[f.Name]
	if present.Present > f.Newest() {
		return present.TooNew(f)
	}
	if version == 0 {
		if err := versions.refuseNeeded(f); err != nil {
			return err
		}
	}
	for i := present.Present; i > version; i-- {
		if _, err := tx.Exec(ctx, n.SQL(f.Steps[i-1].Down)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, n.SQL(ForgetVersion), f.Name, i); err != nil {
			return err
		}
	}
	return nil
}

// refuseNeeded returns an error if a feature with tables requires f.
func (v Versions) refuseNeeded(f *Feature) error {
	for _, other := range Registered() {
		if v[other.Name].Present > 0 && slices.Contains(other.Requires, f) {
			return fmt.Errorf("%w: %s needs the tables of %s: remove it first", tenure.ErrInvalidConfig, other.Name, f.Name)
		}
	}
	return nil
}

// Unknown returns the names of features with tables but unknown to this program, in order.
func (v Versions) Unknown() []string {
	var unknown []string
	for name := range v {
		known := func(f *Feature) bool { return f.Name == name }
		if name != Core && !slices.ContainsFunc(Registered(), known) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Script returns the SQL of all steps of a feature. With onlyIfMissing it does nothing if
// the feature has tables.
func (f *Feature) Script(onlyIfMissing bool) string {
	var script strings.Builder
	for i, step := range f.Steps {
		script.WriteString(strings.TrimSpace(step.Up))
		usable := "NULL"
		if step.UsableFrom > 0 {
			usable = fmt.Sprint(step.UsableFrom)
		}
		fmt.Fprintf(&script, "\n\nINSERT INTO {migrations} (feature, version, usable_from, digest) VALUES ('%s', %d, %s, '%s');\n", f.Name, i+1, usable, step.Digest())
	}
	if !onlyIfMissing {
		return script.String()
	}
	return fmt.Sprintf("DO %[1]s\nBEGIN\nIF NOT EXISTS (SELECT FROM {migrations} WHERE feature = '%[2]s') THEN\n\n%[3]s\nEND IF;\nEND\n%[1]s;\n",
		FeatureQuote, f.Name, script.String())
}
