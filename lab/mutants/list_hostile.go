package main

// hostileMutants break what protects clients from a hostile server.
var hostileMutants = []mutant{
	{
		name: "pgdial: an answer may be of any length",
		file: "internal/pgdial/answers.go", from: "	if a.spent += cost; a.spent > a.limits.answer {\n", to: "	if a.spent += cost; a.spent < 0 {\n",
		promise: "a hostile server cannot fill the memory of its clients",
		tests:   []tests{in("internal/pgdial", "^TestAnswersAreBounded$")}, says: "a hostile answer was read",
	},
	{
		name: "pgdial: a message may be of any length",
		file: "internal/pgdial/answers.go", from: "	if size > uint64(most) {\n", to: "	if size > uint64(most)<<32 {\n",
		promise: "a hostile server cannot fill the memory of its clients",
		tests:   []tests{in("internal/pgdial", "^TestAnswersAreBounded$")}, says: "a hostile answer was read",
	},
	{
		name: "pgdial: parameters may change without end",
		file: "internal/pgdial/answers.go", from: "a.status > a.limits.status {\n", to: "a.status < 0 {\n",
		promise: "a hostile server cannot fill the memory of its clients",
		tests:   []tests{in("internal/pgdial", "^TestEachAnswerHasItsOwnBound$")}, says: "a hostile answer was read",
	},
	{
		name: "pgdial: all answers of a connection share one bound",
		file: "internal/pgdial/answers.go", from: "			a.spent = 0\n		}\n		switch kind {\n", to: "			_ = a.spent\n		}\n		switch kind {\n",
		promise: "an honest answer is read",
		tests:   []tests{in("internal/pgdial", "^TestEachAnswerHasItsOwnBound$")}, says: "an honest answer",
	},
	{
		name: "pgdial: an answer may end without a result",
		file: "internal/pgdial/answers.go", from: "	case a.asked[0] && !a.result: ", to: "	case a.asked[0] && a.asked == nil: ",
		promise: "every call returns within its bound",
		tests:   []tests{in("internal/pgdial", "^TestAnswersAreBounded$")}, says: "a hostile answer was read",
	},
	{
		name: "postgres: the reader keeps notifications",
		file: "postgres/internal/link/connect.go", from: "		config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}\n", to: "		config.OnNotification = nil\n",
		promise: "a hostile server cannot fill the memory of its clients",
		tests:   []tests{in("internal/hostile", "^TestReaderKeepsNoNotifications$")}, says: "the live heap had",
	},
	{
		name: "engine: the pause between sessions that are lost early does not grow",
		file: "opening.go", from: "retry.Failure{Attempt: number - 1, LastError", to: "retry.Failure{Attempt: 1, LastError",
		promise: "sessions that are lost early do not load the server",
		tests:   []tests{in(".", "^TestSessionsLostAtTheirFirstStatementAreOpenedLessOften$")}, says: "sessions were opened within a minute",
	},
	{
		name: "hostile: a heartbeat that failed extends trust",
		file: "serve.go", from: "	if err == nil && !s.trust.extend(", to: "	if !s.trust.extend(",
		promise: "no trust without an acknowledgment, whatever a server answers",
		tests:   []tests{in("internal/hostile", "^TestHostileServerHarmsNoClient$")}, says: "the node leads without an acknowledgment",
	},
	{
		name: "postgres: a refused report of a watch is repeated without a pause",
		file: "postgres/watching.go", from: "const reportPause = time.Second\n", to: "const reportPause = time.Nanosecond\n",
		promise: "a server that refuses a statement and sends notifications does not keep a node busy",
		tests:   []tests{in("postgres", "^TestRefusedReportOfAWatchIsRepeatedAfterAPause$")}, says: "want once a second",
	},
}
