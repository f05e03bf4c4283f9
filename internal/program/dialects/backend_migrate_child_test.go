package dialects

import "context"

// childMigrates is a child that creates the tables and reports "migrated".
const childMigrates = "migrates"

func migrateChild() error {
	_, backend, db, err := readOrder()
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := report{Kind: "migrated"}
	if err := backend.Migrate(ctx); err != nil {
		r.Error = err.Error()
	}
	printReport(r)
	return nil
}
