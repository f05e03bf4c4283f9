/*
Restart and crash of one server: the lock table is forgotten, the tail of the log may be
lost, nodes come back, and the first term of the new life waits for the reunion.

part: reunion-two -DNODES=2 -DCRASHES=1 : two nodes, one crash or restart, lease 5, trust 4
part: reunion-again -DNODES=2 -DCRASHES=2 -DLEASE=3 : a second crash or restart, also during the wait
part: reunion-three -DNODES=3 -DCRASHES=1 -DLEASE=2 : three nodes, one crash or restart
part: reunion-unequal -DNODES=2 -DCRASHES=1 -DLEASE=4 -DL0=2 : leases of 2 and 4
part: reunion-forget -DNODES=2 -DCRASHES=1 -DLEASE=3 -DFORGET : an operator removes the rows of nodes
part: reunion-numbers -DNODES=2 -DCRASHES=2 -DLEASE=2 -DNUMBERS : the numbers of terms

variant: no-wait -DBUG_NO_WAIT reunion-two one_leader : the first term of another life does not wait
variant: own-row -DBUG_OWN_ROW reunion-two one_leader : the node that the row names need not wait
variant: misses-node -DBUG_MISSES_NODE reunion-two one_leader : the reunion misses nodes that have not come back
variant: dead-is-over -DBUG_DEAD_IS_OVER reunion-two one_leader : the reunion does not count nodes that were found dead
variant: short-wait -DBUG_SHORT_WAIT reunion-two one_leader : the wait without a reunion is shorter than the trust window
variant: own-lease -DBUG_OWN_LEASE reunion-unequal one_leader : the wait counts only the lease of the node that waits
variant: reopen-trusting -DBUG_REOPEN_TRUSTING reunion-two one_leader : a node opens a session before trust in the last one has ended
variant: heartbeat-not-durable -DBUG_ASYNC_HEARTBEAT reunion-two one_leader : a crash loses acknowledged heartbeats
variant: row-lost -DBUG_ROW_LOST reunion-two one_leader : a role without a row waits for nothing
variant: numbers-count -DBUG_NUMBERS_COUNT reunion-numbers numbers_grow : a number is the last one plus 1
variant: forget-early -DBUG_FORGET_EARLY reunion-forget one_leader : a row is removed before the trust of its node is over

code: postgres/reunion.go session.waitBefore sha256:35efbc38fde0147d
code: postgres/reunion.go session.waitsSince sha256:036c38de518ffd49
code: postgres/reunion.go session.isRegistryComplete sha256:5025fe7568bdd83b
code: postgres/reunion.go session.endWaits sha256:8492e9f2d6919b0a
code: postgres/queries.go stmtReunion sha256:c53c2210ad5cbde3
code: postgres/queries.go stmtHeartbeat sha256:d4547ecc5c4cb922
code: postgres/queries.go stmtClose sha256:7f53e734f1482a6a
code: postgres/queries.go renewServer sha256:c92ca787455cd9b4
code: postgres/queries.go readServer sha256:8aea1c3926018bf8
code: postgres/join.go joinNodes sha256:812263df9d8a28a6
code: postgres/join.go joining.before sha256:a987a685a8f1e923
code: postgres/join.go joining.prepare sha256:39fef619686d0591
code: postgres/join.go joining.finish sha256:dd71375c2508acdb
code: postgres/members.go trustOver sha256:472c48d5cd74bb28
code: postgres/migrations/0001_functions.up.sql {take} sha256:d2adf3708db0f918
code: trust.go trust.begin sha256:fd9e8db6807eaaf8
code: trust.go trust.extend sha256:aadaf25df12c27cb
code: trust.go trust.valid sha256:78e38a65d7ecfa35
code: serve.go session.heartbeat sha256:18ce48fba66d492f
code: opening.go Node.open sha256:cf1b478bce102543
code: session_end.go session.endLocked sha256:b8b2752eb85ca811
code: acquire.go session.beginTermLocked sha256:36ea90786e4486ce

Abstractions. Time passes in ticks; the trust window is one tick shorter than the lease,
and all clocks have the same rate. There is one role. A node that opens a session frees
the lock of its earlier one, whose trust has ended. Heartbeats and joins commit
synchronously, so the rows of nodes are durable; the row of the role has a durable copy,
which a crash restores. Work returns when its context is canceled: work that continues is
in the model of the session. A number is stored as its distance from the clock: 0 is any
number of an earlier moment. At most 3 terms begin in one tick, and a crash takes longer
than the numbers are ahead of the clock. Settle and FailoverWait are 0.
*/

#ifndef LEASE
#define LEASE 5
#endif
#ifndef L0
#define L0 LEASE
#endif
#define LEASEOF(i) (i == 0 -> L0 : LEASE)
#define TRUSTOF(i) (i == 0 -> L0 - 1 : LEASE - 1)
#define NONE 7
#define MAX(a, b) ((a) > (b) -> (a) : (b))

bool one_leader = true, numbers_grow = true;

/* The server. */
bool lifeRow = true;    /* the row in the unlogged table exists */
bool first = true;      /* its life began with the migration; a stop loses neither that nor a row */
byte up = LEASE;        /* since this life began, at most a lease */
#if CRASHES > 1
byte born = LEASE;      /* since the row of the life was inserted: a stop keeps it */
#else
#define born up
#endif
byte locker = NONE;     /* whose session has the lock of the role */
byte crashes;

typedef Role {
	byte holder;
	bool here;          /* the term began in this life of the server */
#ifdef FORGET
	bool unclean;       /* its holder has not closed it */
#endif
#ifdef NUMBERS
	byte number
#endif
};
Role row, disk;
#ifdef NUMBERS
byte used;              /* the highest number that was used */
#endif

/* The rows of nodes. */
#ifdef FORGET
bool removed[NODES];
#endif
bool here[NODES];       /* the row is of this life of the server */
byte heartbeat[NODES];  /* left of last_heartbeat + lease */
#ifdef BUG_DEAD_IS_OVER
bool dead[NODES];
#endif

/* The nodes. */
byte conn[NODES];       /* 0 no session, 1 joined, 2 the first heartbeat was acknowledged */
bool open[NODES];       /* the server has the session */
byte trust[NODES];      /* left of the trust window */
bool leads[NODES];      /* trusts a term */
byte pending[NODES];    /* has the lock and waits: 1 for the reunion too, 2 only for time */
bool granted[NODES];    /* the answer with a term is on its way */
byte beat[NODES];       /* a heartbeat is under way: 1 + its age */
bool written[NODES];    /* the server has committed it */

#if NODES > 2
#define EACH(f) f(0); f(1); f(2)
#define LEADERS (leads[0] + leads[1] + leads[2])
#else
#define EACH(f) f(0); f(1)
#define LEADERS (leads[0] + leads[1])
#endif

/* Trust ends, contexts are canceled, and the node gives up the session. */
inline giveUp(n) {
	conn[n] = 0; trust[n] = 0; leads[n] = false; beat[n] = 0; written[n] = false; granted[n] = false; pending[n] = 0
}

inline endOnServer(n) {
	open[n] = false;
#ifdef BUG_DEAD_IS_OVER
	dead[n] = true;
#endif
	if :: locker == n -> locker = NONE :: else fi
}

inline copy(to, from) {
	to.holder = from.holder;
#ifdef FORGET
	to.unclean = from.unclean;
#endif
#ifdef NUMBERS
	to.number = from.number;
#endif
	to.here = from.here
}

/* The statement that begins a term: {take}. */
inline begin(n) {
	row.holder = n; row.here = true;
#ifdef FORGET
	row.unclean = true;
#endif
#ifdef NUMBERS
#ifdef BUG_NUMBERS_COUNT
	row.number = row.number + 1;
#else
	row.number = MAX(row.number + 1, 1);
#endif
	numbers_grow = (row.number > used);
	assert(numbers_grow);
	used = row.number;
#endif
	granted[n] = true; pending[n] = 0
}

/* What stmtReunion reads: whether a node may trust an earlier session. */
#if defined(BUG_DEAD_IS_OVER)
#define MAYTRUST(n) (!here[n] && heartbeat[n] > 0 && !dead[n])
#elif defined(BUG_MISSES_NODE)
#define MAYTRUST(n) false
#else
#define MAYTRUST(n) (!here[n] && heartbeat[n] > 0)
#endif
#if NODES > 2
#define REUNITED (!MAYTRUST(0) && !MAYTRUST(1) && !MAYTRUST(2))
#else
#define REUNITED (!MAYTRUST(0) && !MAYTRUST(1))
#endif

/* A role that has no row had no term in a life that ended with a stop. */
#define SINCE (row.holder == NONE -> born : up)
#if defined(BUG_SHORT_WAIT)
#define WAITED(n) (SINCE >= LEASE - 2)
#elif defined(BUG_OWN_LEASE)
#define WAITED(n) (SINCE >= LEASEOF(n))
#else
#define WAITED(n) (SINCE >= LEASE)
#endif

#ifdef NUMBERS
#define FEW (row.number < 3)
#else
#define FEW true
#endif

proctype node(byte i) {
	do
	/* open: the first session inserts the row of the life; join writes the node's row. */
	:: atomic { (conn[i] == 0
#ifdef BUG_REOPEN_TRUSTING
		|| conn[i] == 2 && !open[i] && beat[i] == 0 && !granted[i]
#endif
		) ->
		printf("node %d opens a session\n", i);
		endOnServer(i);
		if :: !lifeRow -> lifeRow = true; up = 0; born = 0 :: else fi;
		here[i] = true; heartbeat[i] = LEASEOF(i);
#ifdef BUG_DEAD_IS_OVER
		dead[i] = false;
#endif
#ifdef FORGET
		removed[i] = false;
#endif
		open[i] = true; conn[i] = 1 }

	/* heartbeat: trust counts from when it was sent. */
	:: atomic { conn[i] > 0 && open[i] && beat[i] == 0 && !granted[i] ->
		printf("node %d sends a heartbeat\n", i);
		beat[i] = 1 }
	:: atomic { open[i] && beat[i] > 0 && !written[i] ->
		printf("the server commits a heartbeat of node %d\n", i);
		heartbeat[i] = LEASEOF(i); written[i] = true;
		copy(disk, row) }
	:: atomic { written[i] ->
		if
		:: beat[i] - 1 >= TRUSTOF(i) -> printf("the answer of a heartbeat comes too late for node %d\n", i); giveUp(i)
		:: else ->
			printf("node %d gets the answer of a heartbeat\n", i);
			conn[i] = 2;
			trust[i] = TRUSTOF(i) - (beat[i] - 1);
			beat[i] = 0; written[i] = false
		fi }

	/* The connection ends: by a crash, or by the server's idle timer. */
	:: atomic { conn[i] > 0 && !open[i] && !granted[i] && !written[i] ->
		printf("node %d sees its connection end\n", i);
		giveUp(i) }
	:: atomic { open[i] && (heartbeat[i] == 0 || conn[i] == 0) ->
		printf("the server ends the session of node %d\n", i);
		endOnServer(i) }

	/* acquire */
	:: atomic { trust[i] > 0 && open[i] && beat[i] == 0 && !leads[i] && !granted[i] && locker == NONE && FEW ->
		locker = i;
		if
		:: (row.here || row.holder == NONE && first
#ifdef BUG_NO_WAIT
			|| true
#endif
#ifdef BUG_OWN_ROW
			|| row.holder == i
#endif
#ifdef BUG_ROW_LOST
			|| row.holder == NONE
#endif
			) ->
			printf("node %d takes the lock and begins a term\n", i);
			begin(i)
		:: else ->
			printf("node %d takes the lock and waits\n", i);
#ifdef FORGET
			pending[i] = (row.holder == NONE || row.unclean && removed[row.holder] -> 2 : 1)
#else
			pending[i] = (row.holder == NONE -> 2 : 1)
#endif
		fi }
	:: atomic { pending[i] > 0 && trust[i] > 0 && open[i] && beat[i] == 0 && FEW && (WAITED(i) || pending[i] == 1 && REUNITED) ->
		printf("node %d begins a term after its wait\n", i);
		begin(i) }
	:: atomic { granted[i] ->
		granted[i] = false;
		if
		:: trust[i] > 0 ->
			printf("node %d leads\n", i);
			leads[i] = true;
			one_leader = (LEADERS <= 1);
			assert(one_leader)
		:: else
		fi }

	/* release: trust ends, the work returns, then the lock is released. */
	:: atomic { leads[i] && open[i] && beat[i] == 0 && locker == i ->
		printf("node %d resigns\n", i);
#ifdef FORGET
		row.unclean = false;
#endif
		leads[i] = false; locker = NONE }
	od
}

inline age(n) {
	if :: beat[n] > 0 && beat[n] < LEASE + 1 -> beat[n]++ :: else fi;
	if :: trust[n] > 0 ->
		trust[n]--;
		if
		:: trust[n] == 0 -> giveUp(n)
		:: else
		fi
	:: else
	fi;
	if :: heartbeat[n] > 0 -> heartbeat[n]-- :: else fi
}

inline loseSession(n) {
	open[n] = false; pending[n] = 0; here[n] = false;
#ifdef BUG_DEAD_IS_OVER
	dead[n] = true; /* the next node in the ring finds its lock free */
#endif
#ifdef BUG_ASYNC_HEARTBEAT
	heartbeat[n] = 0;
#endif
	if :: !written[n] -> beat[n] = 0 :: else fi
}

inline lowerNumbers(by) {
#if defined(NUMBERS) && !defined(BUG_NUMBERS_COUNT)
	row.number = MAX(row.number, by) - by; disk.number = MAX(disk.number, by) - by; used = MAX(used, by) - by
#else
	skip
#endif
}

proctype server() {
	do
	:: atomic { true ->
		printf("a tick passes\n");
		EACH(age);
		lowerNumbers(1);
#if CRASHES > 1
		if :: born < LEASE -> born++ :: else fi;
#endif
		if :: up < LEASE -> up++ :: else fi }
	/* The log is flushed now and then. */
	:: atomic { true ->
		printf("the log is flushed\n");
		copy(disk, row) }
	:: atomic { crashes < CRASHES ->
		printf("the server crashes\n");
		crashes++;
		locker = NONE;
		EACH(loseSession);
		copy(row, disk);
		row.here = false; disk.here = false; first = false;
		lowerNumbers(3);
		lifeRow = false }
	:: atomic { crashes < CRASHES && lifeRow ->
		printf("the server is stopped and started\n");
		crashes++;
		locker = NONE;
		EACH(loseSession);
		copy(disk, row);
		row.here = false; disk.here = false;
		lowerNumbers(3);
		up = 0 }
	od
}

#ifdef FORGET
/* Forget removes the row of a node without a session when its trust is over. */
#ifdef BUG_FORGET_EARLY
#define OVER(n) true
#else
#define OVER(n) (heartbeat[n] == 0)
#endif
inline forget(n) {
	printf("an operator forgets node %d\n", n);
	removed[n] = true; here[n] = false; heartbeat[n] = 0
}
proctype operator() {
	do
	:: atomic { !removed[0] && !open[0] && OVER(0) -> forget(0) }
	:: atomic { !removed[1] && !open[1] && OVER(1) -> forget(1) }
	od
}
#endif

inline join(n) {
	here[n] = true; heartbeat[n] = LEASEOF(n); open[n] = true; conn[n] = 1
}

init {
	atomic {
		row.holder = NONE; disk.holder = NONE;
		EACH(join);
		run node(0); run node(1);
#if NODES > 2
		run node(2);
#endif
#ifdef FORGET
		run operator();
#endif
		run server()
	}
}
