/*
Session mode on one server that lives: heartbeats and other statements that are late or
lost, a node that is frozen between any two steps, the server's idle timer, the reaper,
begin, release in its steps, work that outlives its term, and fenced transactions.

part: session-two -DLEASE=4 : two nodes, lease 4, trust 3
part: session-three -DLEASE=3 -DRIVAL : two nodes, and a third one that takes the role whenever its lock is free
part: session-fences -DLEASE=2 -DFENCES : two nodes with fenced transactions

variant: trust-from-answer -DBUG_FROM_ANSWER session-two one_leader : trust counts from the answer of a heartbeat
variant: late-answer-revives -DBUG_REVIVED session-two one_leader : a late answer revives trust that has ended
variant: idle-timer-early -DBUG_IDLE_EARLY session-two one_leader : the server ends a session before the trust window has passed
variant: reaper-early -DBUG_REAP_EARLY session-two one_leader : the reaper ends a session before its lease is over
variant: release-trusting -DBUG_RELEASE_TRUSTING session-two one_leader : the lock is released before trust has ended
variant: release-before-work -DBUG_RELEASE_WORKING session-two work_first : the lock is released before the work has returned
variant: close-before-work -DBUG_CLOSE_WORKING session-two work_first : the connection is closed before the work has returned
variant: deadline-closes -DBUG_DEADLINE session-two one_leader : a deadline closes the connection while trust lasts
variant: campaign-during-work -DBUG_CAMPAIGN_WORKING session-two work_alone : a term begins while work of the last one runs in the process
variant: grant-without-trust -DBUG_GRANT session-two one_leader : a term begins although trust has ended meanwhile
variant: sends-after-trust -DBUG_SENDS session-two quiet : a session sends statements after its trust has ended
variant: lock-stacks -DBUG_STACKS session-fences no_stacking : a lock is tried again that the session holds
variant: fence-without-key -DBUG_NO_KEY session-fences fenced_order : the begin of a term does not wait for fenced transactions
variant: fence-in-savepoint -DBUG_SAVEPOINT session-fences fenced_order : the fence is lost before the commit
variant: fence-of-snapshot -DBUG_SNAPSHOT session-fences fenced_order : the fence reads the row as of the begin of the transaction
variant: fence-without-term -DBUG_NO_TERM session-fences fenced_order : the fence compares the node and not the term

code: trust.go trust.begin sha256:fd9e8db6807eaaf8
code: trust.go trust.extend sha256:aadaf25df12c27cb
code: trust.go trust.valid sha256:78e38a65d7ecfa35
code: trust.go trust.maySend sha256:0056e75a6e8f4140
code: trust.go trust.add sha256:897b77563846fa9a
code: trust.go trust.end sha256:972eaffb864e5c6d
code: serve.go session.heartbeat sha256:18ce48fba66d492f
code: serve.go session.nextJob sha256:00ebfaadf3a9daf3
code: session_end.go session.endLocked sha256:b8b2752eb85ca811
code: session_end.go session.closeWhenIdle sha256:9e2105e9400c4e62
code: acquire.go session.dueLocked sha256:e9b4b39825362cb9
code: acquire.go session.beginTermLocked sha256:36ea90786e4486ce
code: term_end.go Term.advanceLocked sha256:056984dca558061e
code: term_end.go Term.endTrustLocked sha256:8e7d49b6e0b45996
code: release.go session.release sha256:b8799d239a860d84
code: internal/fsm/table.go Table sha256:05d38f675ee196b2
code: postgres/session.go session.query sha256:29e1a32e1c3dff5f
code: postgres/heartbeat.go session.checkAnswer sha256:4378f8589d689178
code: postgres/internal/link/settings.go SessionLimits sha256:ba1d1f09a7270dc6
code: postgres/reaper.go session.reap sha256:51a84964f95919ff
code: postgres/queries.go stmtReap sha256:6c3793d51b427cae
code: postgres/queries.go stmtResign sha256:7857010db89bdeb2
code: postgres/queries.go stmtClose sha256:7f53e734f1482a6a
code: postgres/release.go session.Release sha256:dc1240b1ff2450c1
code: postgres/locks.go session.take sha256:7b45812cc0740aea
code: postgres/acquire.go session.TryAcquire sha256:e48f5f6960757851
code: postgres/fence.go Backend.fenceQuery sha256:c36d28b7b3ae4499
code: postgres/fence.go verdict sha256:d30ab14656f312ce
code: postgres/intx.go InTx sha256:137058f16d377f31
code: postgres/migrations/0001_functions.up.sql {take} sha256:d2adf3708db0f918

Abstractions. Time passes in ticks; the trust window is one tick shorter than the lease. A
node that makes no step while ticks pass is frozen. A session has one statement under way,
which the server performs at any time while it has the session, also after the node has
given it up. Only heartbeats restart the idle timer, and the server ends a session at any
time after that. Any candidate tries the role at any time, so notifications, the ring and
the marking of dead nodes, which only say when to try, are left out. A session that a node
has replaced keeps its lock for any time, and its statement is performed before that or
never. The third node trusts
its session as long as it has the lock. There is one role; with fenced
transactions it has two terms.
*/

#ifndef TERMS
#define TERMS 2
#endif
#ifdef BUG_IDLE_EARLY
#define IDLE (LEASE - 2)
#else
#define IDLE LEASE
#endif
#ifdef BUG_REAP_EARLY
#define REAPED (LEASE / 2)
#else
#define REAPED (LEASE + 1)
#endif
#define TRUST (LEASE - 1)
#define NONE 15
#define THIRD 7
#define EARLIER 8       /* the session before the node's last one */

#define HEARTBEAT 1
#define TAKE 2
#define RELEASE 3
#define BEGIN 4         /* the session has the lock already */

bool one_leader = true, work_first = true, work_alone = true, quiet = true, no_stacking = true, fenced_order = true;

/* The server. */
byte locker = NONE;     /* the session with the lock of the role */
#ifdef FENCES
byte term;              /* the row */
byte holder = NONE;
bool ended = true;
#define MORE (term < TERMS)
#else
#define MORE true
#endif

/* The nodes. */
byte conn[2];       /* 0 no session, 1 joined, 2 the first heartbeat was acknowledged */
bool open[2];       /* the server has the session */
byte silent[2];     /* ticks since its last heartbeat, at most REAPED */
byte sent[2];       /* the statement under way */
byte waits[2];      /* for how long, at most a lease */
bool done[2];       /* the server has performed it */
byte got[2];        /* and has begun this term */
bool late[2];       /* a statement was performed after trust had ended */
byte trust[2];
byte has[2];        /* the lock, as the node knows: 1 without a term, 2 since a term began */
byte leads[2];      /* the term that it trusts */
#ifdef BUG_REVIVED
byte revives[2];        /* the term that was trusted before */
#endif
byte work[2];       /* the term whose work has not returned */
#ifdef FENCES
byte tx[2];         /* 1 open, 2 fenced */
byte fencedBy[2];   /* its term */
bool stale[2];      /* what the snapshot of the transaction shows is the term */
#define LOCKED(n) (tx[n] == 2)
#ifdef BUG_NO_KEY
#define ROWFREE true
#else
#define ROWFREE (!LOCKED(0) && !LOCKED(1))
#endif
#else
#define ROWFREE true
#endif

#define EACH(f) f(0); f(1)
#ifdef RIVAL
bool rival;
#define LEADERS ((leads[0] > 0) + (leads[1] > 0) + rival)
#else
#define LEADERS ((leads[0] > 0) + (leads[1] > 0))
#endif

inline clearStatement(n) {
	sent[n] = 0; waits[n] = 0; done[n] = false; got[n] = 0
}

/* Trust ends and contexts are canceled; the connection stays open for the work. */
inline giveUp(n) {
	conn[n] = 0; trust[n] = 0;
#ifndef BUG_REVIVED
	has[n] = 0;
#endif
#if defined(BUG_REVIVED)
	if :: leads[n] > 0 && sent[n] == HEARTBEAT -> revives[n] = leads[n] :: else fi;
	leads[n] = 0
#elif !defined(BUG_GRANT)
	leads[n] = 0;
	if :: done[n] -> clearStatement(n) :: else fi
#else
	if :: leads[n] > 0 -> leads[n] = 0 :: else fi
#endif
}

inline endOnServer(n) {
	open[n] = false; late[n] = false; silent[n] = 0;
	if :: !done[n] -> clearStatement(n) :: else fi;
	if :: locker == n -> locker = NONE :: else fi
}

/* The server performs the statement of a session. {take} begins a term unless a fenced
   transaction has the row; then the session keeps the lock and tries again. */
inline perform(n) {
	if
	:: conn[n] == 0 -> quiet = !late[n]; assert(quiet); late[n] = true
	:: else
	fi;
	if
	:: sent[n] == HEARTBEAT -> silent[n] = 0
	:: sent[n] == TAKE || sent[n] == BEGIN ->
		no_stacking = (sent[n] == BEGIN || locker != n);
		assert(no_stacking);
		if
		:: sent[n] == TAKE && locker == NONE || sent[n] == BEGIN && locker == n ->
			locker = n;
#ifdef FENCES
			if
			:: ROWFREE -> term++; holder = n; ended = false; got[n] = term
			:: else -> ended = true
			fi
#else
			got[n] = 1
#endif
		:: else
		fi
	:: sent[n] == RELEASE ->
#ifdef FENCES
		if :: holder == n && !ended && locker == n -> ended = true :: else fi;
#endif
		if :: locker == n -> locker = NONE :: else fi
	fi;
	done[n] = true;
#ifndef BUG_REVIVED
	if :: conn[n] == 0 -> clearStatement(n) :: else fi
#endif
}

proctype node(byte i) {
	do
	/* open: the earlier session is given up, its trust has ended. */
	:: atomic { conn[i] == 0 && !done[i] ->
		printf("node %d opens a session\n", i);
		if
		:: open[i] && sent[i] > 0 -> perform(i)
		:: true
		fi;
		clearStatement(i);
		if :: locker == i -> locker = EARLIER + i :: else fi;
#ifdef FENCES
		if :: holder == i && !ended -> holder = EARLIER + i :: else fi;
#endif
		has[i] = 0; open[i] = true; silent[i] = 0; late[i] = false; conn[i] = 1 }
	:: atomic { locker == EARLIER + i ->
		printf("an earlier session of node %d ends\n", i);
		locker = NONE }

	/* heartbeat */
	:: atomic { sent[i] == 0 && open[i] && (conn[i] == 1 || conn[i] == 2 && trust[i] > 0
#ifdef BUG_SENDS
		|| conn[i] == 0 && work[i] > 0
#endif
		) ->
		printf("node %d sends a heartbeat\n", i);
		sent[i] = HEARTBEAT }
	:: atomic { open[i] && sent[i] > 0 && !done[i] ->
		printf("the server performs a statement of node %d: %d\n", i, sent[i]);
		perform(i) }
	:: atomic { (sent[i] == HEARTBEAT && done[i] && (conn[i] > 0
#ifdef BUG_REVIVED
		|| revives[i] > 0
#endif
		)) ->
		if
#ifndef BUG_FROM_ANSWER
		:: waits[i] >= TRUST -> printf("the answer comes too late for node %d\n", i); giveUp(i)
#endif
		:: else ->
			printf("node %d gets the answer of a heartbeat\n", i);
			conn[i] = 2;
#ifdef BUG_FROM_ANSWER
			trust[i] = TRUST;
#else
			trust[i] = TRUST - waits[i];
#endif
			clearStatement(i);
#ifdef BUG_REVIVED
			if
			:: revives[i] > 0 -> late[i] = false; leads[i] = revives[i]; revives[i] = 0; one_leader = (LEADERS <= 1); assert(one_leader)
			:: else
			fi
#endif
		fi }

	/* acquire: never while work of the last term runs. */
	:: atomic { (sent[i] == 0 && trust[i] > 0 && open[i] && has[i] < 2 && MORE
#ifndef BUG_CAMPAIGN_WORKING
		&& work[i] == 0
#endif
		) ->
		printf("node %d tries the role\n", i);
		sent[i] = (has[i] == 1 -> BEGIN : TAKE) }
	:: atomic { ((sent[i] == TAKE || sent[i] == BEGIN) && done[i] && (conn[i] > 0
#ifdef BUG_GRANT
		|| true
#endif
		)) ->
		if
#ifdef BUG_GRANT
		:: got[i] > 0 ->
#else
		:: got[i] > 0 && trust[i] > 0 ->
#endif
			printf("node %d leads\n", i);
			work_alone = (work[i] == 0);
			assert(work_alone);
			leads[i] = got[i]; work[i] = got[i]; has[i] = 2;
			one_leader = (LEADERS <= 1);
			assert(one_leader)
		:: else ->
#ifdef BUG_STACKS
			skip
#else
			has[i] = (locker == i && conn[i] > 0 -> 1 : 0)
#endif
		fi;
		clearStatement(i) }

	/* resign: trust ends, the context is canceled, the work returns, the lock is released. */
	:: atomic { leads[i] > 0 ->
		printf("node %d ends its term\n", i);
		leads[i] = 0 }
	:: atomic { work[i] > 0 && leads[i] == 0 ->
		printf("the work of node %d returns\n", i);
		work[i] = 0 }
	:: atomic { (sent[i] == 0 && trust[i] > 0 && open[i] && has[i] > 0 && locker == i
#ifndef BUG_RELEASE_TRUSTING
		&& leads[i] == 0
#endif
#if !defined(BUG_RELEASE_WORKING) && !defined(BUG_RELEASE_TRUSTING)
		&& work[i] == 0
#endif
		) ->
		printf("node %d releases the role\n", i);
#ifndef BUG_RELEASE_TRUSTING
		work_first = (work[i] == 0);
		assert(work_first);
#endif
		sent[i] = RELEASE }
	:: atomic { sent[i] == RELEASE && done[i] && conn[i] > 0 -> has[i] = 0; clearStatement(i) }

	/* The session ends: the node notices that the server has ended it. */
	:: atomic { conn[i] > 0 && !open[i] && !done[i] ->
		printf("node %d sees its connection end\n", i);
		giveUp(i) }
	/* closeWhenIdle */
	:: atomic { (conn[i] == 0 && open[i]
#ifndef BUG_CLOSE_WORKING
		&& work[i] == 0
#endif
		) ->
		printf("node %d closes its connection\n", i);
		work_first = (work[i] == 0);
		assert(work_first);
		endOnServer(i) }
	/* The server ends a silent session, or the reaper does. */
	:: atomic { open[i] && silent[i] >= IDLE -> printf("the idle timer ends the session of node %d\n", i); endOnServer(i) }
	:: atomic { open[i] && silent[i] >= REAPED -> printf("the reaper ends the session of node %d\n", i); endOnServer(i) }
#ifdef BUG_DEADLINE
	:: atomic { conn[i] == 2 && open[i] && sent[i] > 0 ->
		printf("a deadline of node %d closes its connection\n", i);
		endOnServer(i) }
#endif

#ifdef FENCES
	/* InTx: the work of a term writes, fences last, and commits. */
	:: atomic { tx[i] == 0 && work[i] > 0 ->
		printf("node %d begins a transaction\n", i);
		tx[i] = 1; fencedBy[i] = work[i];
#ifdef BUG_SNAPSHOT
		stale[i] = (term == work[i] && !ended);
#endif
		}
	:: atomic { tx[i] == 1 ->
		if
#if defined(BUG_SNAPSHOT)
		:: stale[i] ->
#elif defined(BUG_NO_TERM)
		:: holder == i && !ended ->
#else
		:: term == fencedBy[i] && !ended ->
#endif
			printf("node %d fences its transaction\n", i);
			tx[i] = 2
		:: else ->
			printf("the transaction of node %d is fenced off\n", i);
			tx[i] = 0; fencedBy[i] = 0
		fi }
#ifdef BUG_SAVEPOINT
	:: atomic { tx[i] == 2 -> printf("node %d rolls back to a savepoint\n", i); tx[i] = 3 }
#endif
	:: atomic { tx[i] >= 2 ->
		printf("node %d commits\n", i);
		fenced_order = (term == fencedBy[i]);
		assert(fenced_order);
		tx[i] = 0; fencedBy[i] = 0 }
	/* The connection fails, or the fence timeout has passed. */
	:: atomic { tx[i] > 0 -> tx[i] = 0; fencedBy[i] = 0 }
#endif
	od
}

inline age(n) {
	if :: sent[n] > 0 && waits[n] < TRUST -> waits[n]++ :: else fi;
	if :: open[n] && silent[n] < REAPED -> silent[n]++ :: else fi;
	if
	:: trust[n] > 1 -> trust[n]--
	:: trust[n] == 1 ->
		giveUp(n)
	:: else
	fi
}

proctype server() {
	do
	:: atomic { printf("a tick passes\n"); EACH(age) }
#ifdef RIVAL
	:: atomic { locker == NONE ->
		printf("the third node leads\n");
		locker = THIRD; rival = true;
		one_leader = (LEADERS <= 1);
		assert(one_leader) }
	:: atomic { rival -> printf("the third node resigns\n"); rival = false; locker = NONE }
#endif
	od
}

init {
	atomic {
		run node(0); run node(1);
		run server()
	}
}
