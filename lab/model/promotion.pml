/*
Promotion of a standby while the old primary lives on: with synchronous replication and the
declaration SynchronousFailover, and with asynchronous replication and FailoverWait.

part: promotion-synchronous -DSYNC : every commit that is acknowledged has reached the standby
part: promotion-synchronous-ahead -DSYNC -DAHEAD : the clock of the standby is ahead by the margin
part: promotion-numbers -DSYNC -DNUMBERS : the numbers of terms, when the clock of the standby is behind
part: promotion-asynchronous -DFENCED=2 : the old primary is stopped within 2 ticks, FailoverWait is that and a lease

variant: any-one -DBUG_ANY_ONE promotion-synchronous one_leader : another standby acknowledges for the old primary
variant: canceled-wait -DBUG_CANCELED_WAIT promotion-synchronous one_leader : a canceled wait for the standby counts as acknowledged
variant: local-heartbeat -DBUG_LOCAL promotion-synchronous one_leader : heartbeats do not wait for the standby
variant: clock-not-awaited -DBUG_NO_CLOCK_WAIT promotion-numbers numbers_grow : the reunion does not add the difference of the clocks
variant: counts-after-promotion -DBUG_NUMBERS_COUNT promotion-numbers numbers_grow : a number is the last one plus 1
variant: no-margin -DBUG_NO_MARGIN -DBUG_NO_CLOCK_WAIT promotion-synchronous-ahead one_leader : trust lasts as long as the lease, and the reunion does not add the difference of the clocks
variant: same-epoch -DBUG_SAME_EPOCH promotion-synchronous one_leader : the promotion is not noticed
variant: asynchronous-reunion -DBUG_REUNION promotion-asynchronous one_leader : a reunion ends the wait although heartbeats may be missing
variant: failover-wait-without-lease -DBUG_SHORT_WAIT promotion-asynchronous one_leader : FailoverWait covers the fence but no lease after it
variant: new-role-after-promotion -DBUG_ROW_LOST promotion-asynchronous one_leader : a role whose row was lost does not await FailoverWait

code: postgres/reunion.go session.waitBefore sha256:35efbc38fde0147d
code: postgres/reunion.go session.clockDifference sha256:a44247134a9bdd55
code: postgres/reunion.go session.waitsSince sha256:036c38de518ffd49
code: postgres/reunion.go session.isCopy sha256:a4c10b6822afd040
code: postgres/reunion.go session.isRegistryComplete sha256:5025fe7568bdd83b
code: postgres/reunion.go session.endWaits sha256:8492e9f2d6919b0a
code: postgres/internal/server/server.go Server.Lineage sha256:b23201004d951cec
code: postgres/internal/server/server.go Server.Epoch sha256:f4f6e6d981e80fe1
code: postgres/internal/server/server.go IdentifyServer sha256:6583d0a7be9e954e
code: postgres/queries.go stmtReunion sha256:c53c2210ad5cbde3
code: postgres/queries.go stmtHeartbeat sha256:d4547ecc5c4cb922
code: postgres/queries.go renewServer sha256:c92ca787455cd9b4
code: postgres/join.go joinNodes sha256:812263df9d8a28a6
code: postgres/heartbeat.go session.Heartbeat sha256:45ae0b5467abea12
code: postgres/session.go session.warningAsError sha256:61933d8b9945bc39
code: postgres/internal/diagnosis/standbys.go synchronousStandbys.acknowledgesAfterPromotion sha256:77c664b740ab773e
code: postgres/migrations/0001_functions.up.sql {take} sha256:d2adf3708db0f918
code: trust.go trust.extend sha256:aadaf25df12c27cb
code: serve.go session.heartbeat sha256:18ce48fba66d492f

Abstractions. Time passes in ticks: a lease of 4, a margin of 1. Two nodes, one role, one
promotion. A heartbeat has the time at which it was sent, which is earlier than that of its
commit; it may reach the standby, and only then, if replication is synchronous, it is
acknowledged. A server ends a session when the node has left it or the server stops. The
row of the role reaches the standby at any time. The clocks differ by less than the margin:
numbers are stored in halves of a tick, as their distance from the clock of the standby,
which is half a tick behind, and one term begins on a server in a tick. With AHEAD the
standby reads heartbeats a margin older than they are. A node that comes back from the new
primary to the old one is left out: package sim has it. Leases are equal; see reunion-unequal.
*/

#define LEASE 4
#ifdef BUG_NO_MARGIN
#define TRUST LEASE
#else
#define TRUST (LEASE - 1)
#endif
#ifdef SYNC
#define WAIT LEASE
#elif defined(BUG_SHORT_WAIT)
#define WAIT (FENCED > LEASE -> FENCED : LEASE)
#else
#define WAIT (FENCED + LEASE)
#endif
#define NONE 7
#define MAX(a, b) ((a) > (b) -> (a) : (b))

#define OLD 0           /* the primary */
#define NEW 1           /* the standby */

bool one_leader = true, numbers_grow = true;

/* The servers. */
bool row[2];            /* the row of the role has a term */
byte locker[2];
bool here;              /* the last term on the new primary began there */
bool promoted, lifeRow, stopped;
byte up;                /* since the first session on the new primary, at most WAIT */
byte unfenced;          /* how much longer the old primary lives at most */
#ifdef NUMBERS
byte number[2];
byte used;              /* the highest number that was used */
bool begun[2];          /* a term has begun in this tick */
#define MAYBEGIN(x) !begun[x]
#else
#define MAYBEGIN(x) true
#endif

/* The nodes. */
byte heartbeat[2];      /* on the standby: left of last_heartbeat + lease; 0 once the node has joined there */
byte at[2];             /* the server of the node's session */
byte conn[2];           /* 0 no session, 1 joined, 2 the first heartbeat was acknowledged */
bool open[2];           /* the server has the session */
byte trust[2];
bool leads[2];
byte pending[2];        /* 1: a reunion ends the wait too; 2: only time; 3: the margin, after the reunion */
byte after[2];          /* left of the margin */
bool granted[2];        /* the answer with a term is on its way */
byte beat[2];           /* a heartbeat is under way: 1 + its age */
bool written[2];        /* its commit is acknowledged */

inline giveUp(n) {
	conn[n] = 0; trust[n] = 0; leads[n] = false; beat[n] = 0; written[n] = false; granted[n] = false; pending[n] = 0; after[n] = 0
}

inline endOnServer(n) {
	open[n] = false;
	if :: locker[at[n]] == n -> locker[at[n]] = NONE :: else fi
}

inline begin(n) {
	row[at[n]] = true;
	if :: at[n] == NEW -> here = true :: else fi;
#ifdef NUMBERS
#ifdef BUG_NUMBERS_COUNT
	number[at[n]] = number[at[n]] + 1;
#else
	number[at[n]] = MAX(number[at[n]] + 1, (at[n] == OLD -> 2 : 1));
#endif
	numbers_grow = (number[at[n]] > used);
	assert(numbers_grow);
	used = number[at[n]];
	begun[at[n]] = true;
#endif
	granted[n] = true; pending[n] = 0; after[n] = 0
}

/* Whether a node may trust a session of the old primary, as the new one reads it. */
#ifdef AHEAD
#define REUNITED (heartbeat[0] <= 1 && heartbeat[1] <= 1)
#else
#define REUNITED (heartbeat[0] == 0 && heartbeat[1] == 0)
#endif

inline openSession(n, where) {
	printf("node %d opens a session on server %d\n", n, where);
	endOnServer(n);
	at[n] = where; conn[n] = 1; open[n] = true;
	if
	:: where == NEW ->
		heartbeat[n] = 0;
		if :: !lifeRow -> lifeRow = true; up = 0 :: else fi
	:: else
	fi
}

proctype node(byte i) {
	do
	/* A join is a synchronous commit. */
	:: atomic { (conn[i] == 0 && !stopped
#ifdef SYNC
		&& !promoted
#endif
		) ->
		openSession(i, OLD);
		if
#ifndef SYNC
		:: true
#endif
		:: !promoted -> heartbeat[i] = LEASE
		fi }
	:: atomic { conn[i] == 0 && promoted -> openSession(i, NEW) }

	:: atomic { conn[i] > 0 && open[i] && beat[i] == 0 && !granted[i] ->
		printf("node %d sends a heartbeat\n", i);
		beat[i] = 1 }
	:: atomic { open[i] && beat[i] > 0 && !written[i] ->
		if
		:: at[i] == NEW
		:: at[i] == OLD && !promoted -> heartbeat[i] = (beat[i] > LEASE -> 0 : LEASE + 1 - beat[i])
#if !defined(SYNC) || defined(BUG_LOCAL)
		:: at[i] == OLD
#endif
#if defined(BUG_ANY_ONE)
		:: at[i] == OLD && promoted -> printf("another standby acknowledges\n")
#endif
#if defined(BUG_CANCELED_WAIT)
		:: at[i] == OLD && promoted -> printf("an operator cancels the wait for the standby\n")
#endif
		fi;
		printf("server %d commits a heartbeat of node %d\n", at[i], i);
		written[i] = true }
	:: atomic { written[i] ->
		if
		:: beat[i] - 1 >= TRUST -> printf("the answer of a heartbeat comes too late for node %d\n", i); giveUp(i)
		:: else ->
			printf("node %d gets the answer of a heartbeat\n", i);
			conn[i] = 2; trust[i] = TRUST - (beat[i] - 1); beat[i] = 0; written[i] = false
		fi }
	:: atomic { conn[i] > 0 && !open[i] && !granted[i] && !written[i] ->
		printf("node %d sees its connection end\n", i);
		giveUp(i) }
	:: atomic { conn[i] == 1 && !written[i] && beat[i] > 0 ->
		printf("an opening fails of node %d\n", i);
		giveUp(i); endOnServer(i) }
	:: atomic { open[i] && conn[i] == 0 ->
		printf("server %d ends the session of node %d\n", at[i], i);
		endOnServer(i) }

	:: atomic { trust[i] > 0 && open[i] && beat[i] == 0 && !leads[i] && !granted[i] && locker[at[i]] == NONE && MAYBEGIN(at[i]) ->
		locker[at[i]] = i;
		if
		:: (at[i] == OLD || here
#ifdef BUG_SAME_EPOCH
			|| true
#endif
#ifdef BUG_ROW_LOST
			|| !row[NEW]
#endif
			) ->
			printf("node %d takes the lock on server %d and begins a term\n", i, at[i]);
			begin(i)
		:: else ->
			printf("node %d takes the lock on server %d and waits\n", i, at[i]);
#if defined(SYNC) || defined(BUG_REUNION)
			pending[i] = (row[NEW] -> 1 : 2)
#else
			pending[i] = 2
#endif
		fi }
	:: atomic { pending[i] == 1 && trust[i] > 0 && open[i] && REUNITED ->
		printf("all nodes are back\n");
#ifndef BUG_NO_CLOCK_WAIT
		after[i] = 1;
#endif
		pending[i] = 3 }
	:: atomic { pending[i] > 0 && trust[i] > 0 && open[i] && beat[i] == 0 && MAYBEGIN(NEW) && (pending[i] == 3 && after[i] == 0 || up >= WAIT) ->
		printf("node %d begins a term after its wait\n", i);
		begin(i) }
	:: atomic { granted[i] ->
		granted[i] = false;
		if
		:: trust[i] > 0 ->
			printf("node %d leads\n", i);
			leads[i] = true;
			one_leader = (leads[0] + leads[1] <= 1);
			assert(one_leader)
		:: else
		fi }
	:: atomic { leads[i] && open[i] && beat[i] == 0 && locker[at[i]] == i ->
		printf("node %d resigns\n", i);
		leads[i] = false; locker[at[i]] = NONE }
	od
}

inline age(n) {
	if :: beat[n] > 0 && beat[n] < TRUST + 1 -> beat[n]++ :: else fi;
	if
	:: trust[n] > 1 -> trust[n]--
	:: trust[n] == 1 -> giveUp(n)
	:: else
	fi;
	if :: after[n] > 0 -> after[n]-- :: else fi;
	if :: heartbeat[n] > 0 -> heartbeat[n]-- :: else fi
}

inline stop(n) {
	if :: open[n] && at[n] == OLD -> endOnServer(n); if :: !written[n] -> beat[n] = 0 :: else fi :: else fi
}

proctype servers() {
	do
	:: atomic { !promoted || stopped || unfenced > 0 ->
		printf("a tick passes\n");
		age(0); age(1);
#ifdef NUMBERS
		begun[OLD] = false; begun[NEW] = false;
#ifndef BUG_NUMBERS_COUNT
		number[OLD] = MAX(number[OLD], 2) - 2; number[NEW] = MAX(number[NEW], 2) - 2; used = MAX(used, 2) - 2;
#endif
#endif
#ifndef SYNC
		if :: promoted && unfenced > 0 -> unfenced-- :: else fi;
#endif
		if :: lifeRow && up < WAIT -> up++ :: else fi }
	:: atomic { !promoted ->
		printf("the standby has the row\n");
#ifdef NUMBERS
		number[NEW] = number[OLD];
#endif
		row[NEW] = row[OLD] }
	:: atomic { !promoted ->
		printf("the standby is promoted\n");
		promoted = true;
#ifdef SYNC
		unfenced = 1
#else
		unfenced = FENCED
#endif
		}
	:: atomic { promoted && !stopped ->
		printf("the old primary stops\n");
		stopped = true;
		stop(0); stop(1) }
	od
}

init {
	atomic {
		locker[OLD] = NONE; locker[NEW] = NONE;
		openSession(0, OLD); openSession(1, OLD);
		heartbeat[0] = LEASE; heartbeat[1] = LEASE;
		run node(0); run node(1); run servers()
	}
}
