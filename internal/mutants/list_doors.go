package main

// doorMutants break what keeps strangers, and mistakes in connection strings, outside.
var doorMutants = []mutant{
	{
		name: "pgdial: hostaddr is ignored",
		file: "internal/pgdial/hostaddr.go", from: "		byHost[names[i]] = append(byHost[names[i]], net.JoinHostPort(address, ports[i]))\n", to: "		byHost[names[i]] = nil\n",
		promise: "a parameter of libpq is honored: hostaddr",
		tests:   []tests{in("internal/pgdial", "^TestHostaddrIsDialedAndTheHostVerified$")}, says: "addresses and names",
	},
	{
		name: "pgdial: parameters of libpq reach the server",
		file: "internal/pgdial/parse.go", from: "		if row.fate != sent {\n", to: "		if row.fate == sent {\n",
		promise: "no parameter of libpq is passed on as a setting of the server",
		tests:   []tests{in("internal/pgdial", "^TestParametersAreHonoredIgnoredOrRefused$")}, says: "the server would get",
	},
	{
		name: "pgdial: the variables of libpq that pgx does not read are ignored",
		file: "internal/pgdial/parse.go", from: "			value = os.Getenv(row.env)\n", to: "			value = \"\"\n",
		promise: "a parameter of libpq is honored or refused in the environment too",
		tests:   []tests{in("internal/pgdial", "^TestParametersAreHonoredIgnoredOrRefused$")}, says: "an error of the configuration with",
	},
	{
		name: "pgdial: a standby is waited for",
		file: "internal/pgdial/parse.go", from: "	if err := r.refuseStandbys(); err != nil {\n", to: "	if err := r.refuseStandbys(); err != nil && false {\n",
		promise: "a connection string that no primary can satisfy is refused",
		tests:   []tests{in("internal/pgdial", "^TestParametersAreHonoredIgnoredOrRefused$")}, says: "writes to the primary",
	},
	{
		name: "pgdial: a pool has no statement cache if the string says so",
		file: "internal/pgdial/parse.go", from: "	r.config.StatementCacheCapacity, r.config.DescriptionCacheCapacity = cacheCapacity, cacheCapacity\n", to: "	_ = cacheCapacity\n",
		promise: "every command works in every statement mode",
		tests:   []tests{in("cmd/tenure/internal/cli", "^TestCommandsReadWithoutStatementCache$")}, says: "statement_cache_capacity=0",
	},
	{
		name: "pgdial: an @ of a password is a part of the host",
		file: "internal/pgdial/remains.go", from: "	if strings.Contains(rest, \"@\") || ", to: "	if ",
		promise: "no part of a password is said or looked up",
		tests:   []tests{in("internal/pgdial", "^TestNoPartOfAPasswordIsSaid$")}, says: "of the password",
	},
	{
		name: "pgdial: an unknown parameter is named although it may be a part of a password",
		file: "internal/pgdial/parse.go", from: "	if secret || !plainName", to: "	if secret && false || !plainName",
		promise: "no part of a password is said or looked up",
		tests:   []tests{in("internal/pgdial", "^TestNoPartOfAPasswordIsSaid$")}, says: "of the password",
	},
	{
		name: "database: an @ of a password for MariaDB is a part of the database",
		file: "cmd/tenure/internal/database/mysql.go", from: "behind >= 0 && strings.Contains(rest[behind:], \"@\")", to: "behind > len(rest)",
		promise: "no part of a password is said or looked up",
		tests:   []tests{in("cmd/tenure/internal/database", "^TestNoPartOfAPasswordIsLookedUp$")}, says: "is said: ",
	},
	{
		name: "config: a file with a password is open to others",
		file: "cmd/tenure/internal/config/exposed.go", from: "	if mode == allowed || ", to: "	if mode != 0 || ",
		promise: "a configuration file with a secret must not be open to other users",
		tests:   []tests{in("cmd/tenure/internal/config", "^TestFileWithSecretMustNotBeOpenToOthers$")}, says: "want an error that names",
	},
	{
		name: "proxy: one address takes all connections",
		file: "cmd/tenure/internal/tcpproxy/limit.go", from: "l.clients[client] >= l.perAddress:", to: "l.clients[client] >= l.most:",
		promise: "one address cannot take all connections of a proxy",
		tests:   []tests{in("cmd/tenure/internal/tcpproxy", "^TestOneAddressCannotTakeAllConnections$")}, says: "one address",
	},
	{
		name: "agent: the directories above the socket are not looked at",
		file: "agent/server/socket_linux.go", from: "		for path != filepath.Dir(path) {\n", to: "		for path == \"\" {\n",
		promise: "no other user can replace the socket of an agent",
		tests:   []tests{in("agent", "^TestAgentRefusesDirectoriesOfOthersAboveTheSocket$")}, says: ", socket in ",
	},
}
