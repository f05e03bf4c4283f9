package main

// schemaMutants break the tables of features: their versions, their migrations and
// the privileges on them.
var schemaMutants = []mutant{
	// Whether the tables are there.
	{
		name: "schema: a program does not compare digests of migrations",
		file: "internal/schema/version.go", from: `recorded != "" && recorded != step.Digest()`, to: `recorded != "" && recorded == step.Digest()+"other"`,
		promise: "a build says so when another one made the version that it wants",
		tests:   []tests{in("postgres", "^TestTablesOfAnotherBuildAreRefused$")}, says: "want that another build made",
	},
	{
		name: "postgres: a missing function is a lost connection",
		file: "postgres/open.go", from: "case lacksObject(err):", to: "case lacksObject(err) && false:",
		promise: "no node retries what no retry can mend",
		tests:   []tests{in("postgres", "^TestMissingObjectsAreNoConnectionFault$")}, says: "want ErrSchema and not ErrConnection",
	},
	{
		name: "schema: tables are remembered until a restart",
		file: "internal/schema/schema.go", from: "	return found && s.now().Before(until.(time.Time))\n", to: "	return found && !until.(time.Time).IsZero()\n",
		promise: "a process without a session notices that the tables of a feature were removed",
		tests:   []tests{in("internal/schema", "^TestReadersNoticeRemovedTables$")}, says: "a reader of tables that may be missing",
	},
	{
		name: "schema: a session remembers the tables of a removed installation",
		file: "postgres/open.go", from: "	b.installation.Schema.Forget() // the session", to: "	_ = b.installation // the session",
		promise: "the node that makes an installation anew also creates the tables of its features",
		tests:   []tests{in("postgres", "^TestNewInstallationGetsTablesOfUsedFeature$")}, says: "no table extra",
	},
	{
		name: "schema: an older version counts as the newest",
		file: "internal/schema/schema.go", from: "	if version.Present >= f.Newest() {\n", to: "	if version.Present >= 1 {\n",
		promise: "the first writer brings older tables up to date",
		tests:   []tests{in("internal/schema", "^TestOldVersionIsNotRemembered$")}, says: "the older tables were not brought up to date",
	},
	{
		name: "schema: readers query tables that are missing",
		file: "internal/schema/schema.go", from: "	if err != nil || !exist {\n		return noRows", to: "	if err != nil || exist && !exist {\n		return noRows",
		promise: "what reads a feature that was never used finds nothing and does not fail",
		tests:   []tests{in("internal/schema", "^TestReadersNoticeRemovedTables$")}, says: "a reader of tables that may be missing",
	},

	// Versions.
	{
		name: "schema: newer tables are used",
		file: "internal/schema/version.go", from: "case v.usableFrom <= f.Newest():", to: "case v.usableFrom > 0:",
		promise: "a program leaves alone tables that it does not know",
		tests:   []tests{in("postgres", "^TestFeaturesHaveSeparateVersions$")}, says: "want ErrSchema and the version",
	},
	{
		name: "schema: additive migrations lock older programs out",
		file: "internal/schema/version.go", from: "case v.usableFrom <= f.Newest():", to: "case v.usableFrom < 0:",
		promise: "the programs of two versions work side by side where the migration says so",
		tests:   []tests{in("postgres", "^TestFeaturesHaveSeparateVersions$")}, says: "creating the tables of version",
	},
	{
		name: "schema: a version is that of the first step",
		file: "internal/schema/version.go", from: "ORDER BY m.feature, m.version`", to: "ORDER BY m.feature, m.version DESC`",
		promise: "a migration is applied once",
		tests:   []tests{in("postgres", "^TestFeaturesHaveSeparateVersions$")}, says: "want ErrSchema and the version",
	},

	// Migrations.
	{
		name: "schema: steps are taken again",
		file: "internal/schema/migrate.go", from: "		for i := present; i < f.Newest(); i++ {\n", to: "		for i := 0 * present; i < f.Newest(); i++ {\n",
		promise: "a migration is applied once",
		tests:   []tests{in("internal/schema", "^TestOldVersionIsNotRemembered$")}, says: "bringing the older tables up to date",
	},
	{
		name: "schema: only one step is taken",
		file: "internal/schema/migrate.go", from: "		for i := present; i < f.Newest(); i++ {\n", to: "		for i := present; i < min(f.Newest(), present+1); i++ {\n",
		promise: "a feature is brought to the newest version",
		tests:   []tests{in("internal/schema", "^TestFailedStepLeavesNoVersion$")}, says: "a broken migration succeeded",
	},
	{
		name: "schema: tables that another feature needs are removed",
		file: "internal/schema/migrate.go", from: "		if v[other.Name].Present > 0 && slices", to: "		if v[other.Name].Present < 0 && slices",
		promise: "a feature keeps the tables that it requires",
		tests:   []tests{in("internal/schema", "^TestDownKeepsRequiredTables$")}, says: "removed the tables that another feature needs",
	},
	{
		name: "schema: features that are not known are removed",
		file: "internal/schema/migrate.go", from: "		if name != Core && !slices", to: "		if name == Core && !slices",
		promise: "a program removes no tables that it does not know",
		tests:   []tests{in("postgres", "^TestFeaturesHaveSeparateVersions$")}, says: "want ErrSchema and the features",
	},
	{
		name: "schema: a script creates what is there",
		file: "internal/schema/migrate.go", from: "	if !onlyIfMissing {\n", to: "	if !onlyIfMissing || f.Name != Core {\n",
		promise: "the script of a feature can be applied twice",
		tests:   []tests{inCommand("internal/cli", "^TestMigrateHandlesEachFeature$")}, says: "applying the script twice",
	},
	{
		name: "schema: a program that must not migrate does",
		file: "internal/schema/schema.go", from: "	if s.manual {\n", to: "	if s.manual && f == nil {\n",
		promise: "with manual migrations a program creates nothing",
		tests:   []tests{in("postgres", "^TestFirstUseWithoutMigrationIsRefused$")}, says: "and the command",
	},
	{
		name: "schema: a feature comes before what it requires",
		file: "internal/schema/feature.go", from: "			add(required)\n", to: "			defer add(required)\n",
		promise: "tables that others refer to are created first",
		tests:   []tests{in("internal/schema", "^TestFindPutsRequiredFeaturesFirst$")}, says: "the features for",
	},

	// Names and old transactions.
	{
		name: "schema: a channel is longer than an identifier",
		file: "internal/schema/names.go", from: "	if len(name) <= maxIdentifier {\n", to: "	if len(name) <= 2*maxIdentifier {\n",
		promise: "long names of schemas leave notifications working",
		tests:   []tests{in("internal/schema", "^TestChannelFitsIdentifier$")}, says: "bytes; want at most",
	},
	{
		name: "schema: transactions of earlier terms stay",
		file: "internal/schema/stale.go", from: "    AND objsubid = 1\n", to: "    AND objsubid = 0\n",
		promise: "a leader that is gone does not block its successor's work",
		tests:   []tests{in("processor", "^TestTransactionsOfEarlierTermsAreTerminated$")}, says: "which a transaction that was left open delays",
	},

	// The features.
	{
		name: "features: schedules do without the table of changes",
		file: "internal/features/features.go", from: "	Requires: []*schema.Feature{Changes},\n	Steps:    schema.Steps(files, \"schedules\"),", to: "	Requires: []*schema.Feature{},\n	Steps:    schema.Steps(files, \"schedules\"),",
		promise: "the first use of a feature creates all tables that it needs",
		tests:   []tests{in("cron", "^TestWorkGrantsSuffice$")}, says: "triggering a run of",
	},
	{
		name: "cron: a new leader first stores what its program declares",
		file: "cron/loop.go", from: "		if l.readAt.IsZero() {", to: "		if l.readAt.IsZero() && l.begun {",
		promise: "what an operator has set of a schedule lasts across terms and loses no tick",
		tests:   []tests{in("cron", "^TestOverrideLastsAcrossTerms$")}, says: "s between two ticks; want 1",
	},
	{
		name: "features: processors do without the table of changes",
		file: "internal/features/features.go", from: "	Requires: []*schema.Feature{Changes},\n	Steps:    schema.Steps(files, \"processors\"),", to: "	Requires: []*schema.Feature{},\n	Steps:    schema.Steps(files, \"processors\"),",
		promise: "the first use of a feature creates all tables that it needs",
		tests:   []tests{in("processor", "^TestWorkGrantsSuffice$")}, says: "skipping with the granted privileges",
	},
	{
		name: "features: schedulers may not write runs",
		file: "internal/features/features.go", from: "		schema.OnTable(\"SELECT, INSERT, UPDATE, DELETE\", \"{runs}\"),\n", to: "		schema.OnTable(\"SELECT\", \"{runs}\"),\n",
		promise: "tenure migrate grants prints all that is needed",
		tests:   []tests{in("cron", "^TestWorkGrantsSuffice$")}, says: "triggering a run of",
	},
	{
		name: "features: processors may not write dead letters",
		file: "internal/features/features.go", from: "		schema.OnTable(\"SELECT, INSERT, UPDATE, DELETE\", \"{dead_letters}\"),\n", to: "		schema.OnTable(\"SELECT\", \"{dead_letters}\"),\n",
		promise: "tenure migrate grants prints all that is needed",
		tests:   []tests{in("processor", "^TestWorkGrantsSuffice$")}, says: "skipping with the granted privileges",
	},
	{
		name: "features: programs may not append events",
		file: "internal/features/features.go", from: "\"SELECT, INSERT\", \"{events}\"", to: "\"SELECT\", \"{events}\"",
		promise: "tenure migrate grants prints all that is needed",
		tests:   []tests{in("eventstore", "^TestWorkGrantsSuffice$")}, says: "appending an event",
	},
	{
		name: "features: compaction may not delete runs",
		file: "internal/features/features.go", from: "		schema.OnTable(\"SELECT, DELETE\", \"{runs}\"),\n", to: "		schema.OnTable(\"SELECT\", \"{runs}\"),\n",
		promise: "tenure migrate grants prints all that is needed",
		tests:   []tests{in("retention", "^TestCompactionGrantsSuffice$")}, says: "old rows are left",
	},
	{
		name: "features: compaction may not write daily totals",
		file: "internal/features/features.go", from: "		schema.OnTable(\"SELECT, INSERT, UPDATE\", \"{term_days}\"),\n", to: "		schema.OnTable(\"SELECT, INSERT\", \"{term_days}\"),\n",
		promise: "tenure migrate grants prints all that is needed",
		tests:   []tests{in("retention", "^TestCompactionGrantsSuffice$")}, says: "old rows are left",
	},
}
