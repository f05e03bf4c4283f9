package dialects

// childMigrates is the child that creates the tables.
const childMigrates = "migrates"

func migrateChild() error { return nil }
