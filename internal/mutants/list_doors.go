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
	{
		name: "sidecar: a guard ends when it is granted",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "time.AfterFunc(time.Until(until), guard.Done)", to: "time.AfterFunc(0, guard.Done)",
		promise: "serve-http: a step-down waits for the guard of a client",
		tests:   []tests{inCommand("internal/sidecar", "^TestGuardKeepsRoleUntilClientCloses$")}, says: "the term has ended while a client holds a guard",
	},
	{
		name: "sidecar: a client that does not read keeps its guard",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "time.AfterFunc(time.Until(until), guard.Done)", to: "time.AfterFunc(2*time.Until(until), guard.Done)",
		promise: "http: a guard lasts for at_most_seconds at most",
		tests:   []tests{inCommand("internal/sidecar", "^TestGuardEndsAfterDeclaredTime$")}, says: "want the 5s that the client had declared",
	},
	{
		name: "sidecar: an evicted connection ends its guard",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "	case evicted(r):\n", to: "	case evicted(r) && false:\n",
		promise: "serve-http: a guarded piece of work ends before the next term begins",
		tests:   []tests{inCommand("internal/sidecar", "^TestGuardOfEvictedConnectionLasts$")}, says: "want the 5s that the client had declared",
	},
	{
		name: "sidecar: a guard outlasts the settle time",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "most := timing.Settle - guardMargin;", to: "most := timing.Settle + time.Hour;",
		promise: "serve-http: if the leader dies, the next term waits for the longest piece of work",
		tests:   []tests{inCommand("internal/sidecar", "^TestPieceThatOutlastsSettleIsRefused$")}, says: "the status is",
	},
	{
		name: "sidecar: a guard outlasts the shortest trust window",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "most := timing.Lease - timing.Margin - timing.RefreshInterval;", to: "most := timing.Lease - timing.Margin;",
		promise: "http: a piece of work that the lease does not cover is refused with 422",
		tests:   []tests{inCommand("internal/sidecar", "^TestPieceThatOutlastsSettleIsRefused$")}, says: "the status is",
	},
	{
		name: "sidecar: a guard outlasts the rest of the trust window",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "	if left < atMost {\n", to: "	if left < 0 {\n",
		promise: "serve-http: a guarded piece of work ends before the next term begins, even if the leader freezes",
		tests:   []tests{inCommand("internal/sidecar", "^TestPieceThatOutlastsTrustIsRefused$")}, says: "the status is",
	},
	{
		name: "sidecar: a guard of another term is granted",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "body.Term != 0 && body.Term != term.Number()", to: "body.Term < 0",
		promise: "http: a guard is granted for the named term only",
		tests:   []tests{inCommand("internal/sidecar", "^TestGuardsAreRefused$")}, says: "the status is",
	},
	{
		name: "sidecar: a guard needs no token",
		file: "cmd/tenure/internal/sidecar/routes.go", from: "\"/guards\", post(h.guard)}", to: "\"/guards\", methods{http.MethodPost: h.guard}}",
		promise: "http: a guard needs the token",
		tests:   []tests{inCommand("internal/sidecar", "^TestGuardsAreRefused$")}, says: "the status is",
	},
	{
		name: "engine: the holder of a guard delays the end of other work",
		file: "term.go", from: "{ return g.term.stoppingChannel() }", to: "{ return g.term.Stopping() }",
		promise: "Guard.Stopping does not change when the term's context is canceled",
		tests:   []tests{in(".", "^TestGuardShowsStopping$")}, says: "time until the role was free",
	},
	{
		name: "sidecar: a guard ends when a response must have been taken",
		file: "cmd/tenure/internal/sidecar/guard.go", from: "_ = out.control.SetWriteDeadline(until.Add(guardLast))", to: "_ = guardLast",
		promise: "http: a guard is held while the response is open",
		tests:   []tests{inCommand("internal/sidecar", "^TestGuardOutlastsBoundsOnRequests$")}, says: "the event is",
	},
}
