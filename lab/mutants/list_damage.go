package main

// damageMutants break the check of what the protocol relies on in the database, and its
// repair.
var damageMutants = []mutant{
	{
		name: "opening: the checks wait for one another",
		file: "postgres/open.go", from: "		a.Send(ctx, s.checks()...)\n", to: "		_ = s.checks\n",
		promise: "an opening takes ten round trips",
		tests:   []tests{in("postgres", "^TestOpeningTakesTenRoundTrips$")}, says: "round trips, want at most",
	},
	{
		name: "opening: no watch connection beside the session's",
		file: "postgres/open.go", from: "	return func() (T, error) {\n", to: "	<-done; return func() (T, error) {\n",
		promise: "the connections of a node open side by side",
		tests:   []tests{in("postgres", "^TestOpeningTakesTenRoundTrips$")}, says: "round trips, want at most",
	},
	{
		name: "schema: a session opens on a damaged core",
		file: "postgres/open.go", from: "	if err := b.installation.CheckParts(ctx, a, versions); err != nil {\n", to: "	if err := b.installation.CheckParts(ctx, a, versions); err == nil && err != nil {\n",
		promise: "a session opens only on a core that looks as its migrations made it",
		tests:   []tests{in("postgres", "^TestSomeDamagesHaveAWayOut$/^trigger_disabled$")}, says: "want both content, or neither",
	},
	{
		name: "schema: a disabled trigger looks like an enabled one",
		file: "internal/schema/parts.go", from: "WHEN 'D' THEN 'disabled'", to: "WHEN 'x' THEN 'disabled'",
		promise: "a session opens only on a core that looks as its migrations made it",
		tests:   []tests{in("postgres", "^TestSomeDamagesHaveAWayOut$/^trigger_disabled$")}, says: "commands that mended it",
	},
	{
		name: "schema: a rule on a table is allowed",
		file: "internal/schema/damage.go", from: "if slices.Contains(unwanted, p.Kind) || additional &&", to: "if additional &&",
		promise: "nothing changes what the statements of a session do",
		tests:   []tests{in("postgres", "^TestSomeDamagesHaveAWayOut$/^rule$")}, says: "commands that mended it",
	},
	{
		name: "schema: the first use of a damaged feature succeeds",
		file: "internal/schema/schema.go", from: "		return s.refuseDamage(ctx, versions, f)\n", to: "		return nil\n",
		promise: "the first use of a damaged feature is refused",
		tests:   []tests{in("postgres", "^TestSomeDamagesHaveAWayOut$/^column_of_a_feature_dropped$")}, says: "want both content, or neither",
	},
	{
		name: "postgres: a repair records no version",
		file: "postgres/internal/install/repair.go", from: "if present > 0 {", to: "if present >= 0 {",
		promise: "after a repair a node leads",
		tests:   []tests{in("postgres", "^TestSomeDamagesHaveAWayOut$/^all_rows_gone$")}, says: "still damaged after",
	},
	{
		name: "postgres: the history of nodes does not follow its last row",
		file: "postgres/migrations/0001.up.sql", from: "    FOR attempt IN 1..3 LOOP\n", to: "    FOR attempt IN 1..1 LOOP\n",
		promise: "a node joins although a sequence is behind, and its history has the join",
		tests:   []tests{in("postgres", "^TestHistoryFollowsRowsThatWereCopied$")}, says: "rows of the history; want",
	},
	{
		name: "postgres: repaired terms may repeat numbers",
		file: "postgres/internal/install/repair_rows.go", from: "WHERE t.role = f.role AND t.term < f.term;`", to: "WHERE t.role = f.role AND t.term > f.term;`",
		promise: "2 Numbers grow: also after a repair",
		tests:   []tests{in("postgres", "^TestRepairKeepsNumbersGrowing$")}, says: "Invariant 2: the number of the next term",
	},
	{
		name: "lease: a node opens on damaged tables",
		file: "lease/schema.go", from: "	case version == schemaVersion:\n		return b.damage(ctx, true)\n", to: "	case version == schemaVersion:\n		return nil\n",
		promise: "a session of leases opens only on tables that look as Migrate makes them",
		tests:   []tests{inShared("dialects", "^TestBackendSomeDamagesHaveAWayOut$/^SQLite$/^tenure_lease_seats.term_dropped$")}, says: "want a command that mends it",
	},
	{
		name: "lease: a trigger on a table is allowed",
		file: "lease/parts.go", from: "			t.others = append(t.others, \"the \"+r.kind+\" \"+r.name)\n", to: "			_ = t.others\n",
		promise: "nothing changes what the statements of leases do",
		tests:   []tests{inShared("dialects", "^TestBackendSomeDamagesHaveAWayOut$/^SQLite$/^tenure_lease_seats_with_a_trigger$")}, says: "want both content, or neither",
	},
	{
		name: "lease: a new session has the number of one that held a role",
		file: "lease/queries_sessions.go", from: "COALESCE(MAX(t.holder), 0)", to: "COALESCE(MIN(t.term), 0) * 0",
		promise: "a node leads after the table of roles alone was restored",
		tests:   []tests{inShared("dialects", "^TestBackendSomeDamagesHaveAWayOut$/^SQLite$/^only_tenure_lease_seats$")}, says: "want both content, or neither",
	},
	{
		name: "lease: a repair under a leader",
		file: "lease/repair.go", from: "	return statements, b.refuseForRepair(ctx, on)\n}\n", to: "	return statements, nil\n}\n",
		promise: "a repair refuses live nodes",
		tests:   []tests{inShared("dialects", "^TestBackendRepairRefusesLiveNodes$/^SQLite$")}, says: "a repair under a leader",
	},
	{
		name: "lease: a repair removes a table of another program",
		file: "lease/parts.go", from: "	return 2*shared >= len(t.columns)\n", to: "	return 2*shared >= 0\n",
		promise: "a table of another program stays unchanged",
		tests:   []tests{inShared("dialects", "^TestBackendRepairLeavesTablesOfOtherPrograms$/^SQLite$")}, says: "want ErrSchema that names the table",
	},
	{
		name: "lease: repaired terms may repeat numbers",
		file: "lease/queries.go", from: "WHERE term < (SELECT max(h.term)", to: "WHERE term > (SELECT max(h.term)",
		promise: "2 Numbers grow: also after a repair",
		tests:   []tests{inShared("dialects", "^TestBackendRepairKeepsNumbersGrowing$/^SQLite$")}, says: "Invariant 2: the number of the next term",
	},
}
