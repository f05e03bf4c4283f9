/*
Leases in SQL: rows with an expiry instead of locks, and commits whose answer is lost.

part: lease : two nodes, whose sessions expire and open again
part: lease-unequal -DL0=2 : leases of 2 and 3

variant: expiry-not-recorded -DBUG_NOT_RECORDED -DBUG_FROM_ANSWER lease one_leader : a role is acquired without ending the expired session, and trust counts from the answer
variant: expiry-early -DBUG_EARLY lease one_leader : a session is ended before its lease is over
variant: lease-trust-from-answer -DBUG_FROM_ANSWER lease one_leader : trust counts from the answer of a heartbeat
variant: superseded-is-over -DBUG_SUPERSEDED lease-unequal one_leader : a node that still trusts is superseded, and its role is free at once
variant: row-not-compared -DBUG_NOT_COMPARED lease one_leader : a role is acquired although its row has changed since it was read
variant: row-not-settled -DBUG_UNSETTLED lease one_leader : a node finds its term in a row that a late commit is about to change

code: lease/roles.go session.checkAvailable sha256:833089999f9c591c
code: lease/roles.go session.endExpiredSessions sha256:241f091057cba230
code: lease/roles.go session.releaseUnconfirmed sha256:a47525bddb95f8f4
code: lease/roles.go session.awaitReleases sha256:e3c4e8ecdfe74ab3
code: lease/roles.go roleRow.sessionLive sha256:fbeaea1460e291ff
code: lease/acquire.go session.acquireRoles sha256:c1b82bad6fc70dd2
code: lease/acquire.go session.sortByReadiness sha256:123b990286dd6a4a
code: lease/acquire.go session.checkLive sha256:6647fc0625a93950
code: lease/session.go session.Heartbeat sha256:b1c10267b4118efb
code: lease/session.go session.renewLease sha256:aba00a05fbce84d8
code: lease/session.go Backend.Open sha256:e729f1ac7bd72e24
code: lease/release.go session.Release sha256:758a3773a47234d4
code: trust.go trust.extend sha256:aadaf25df12c27cb
code: release.go session.release sha256:b8799d239a860d84

Abstractions. Time passes in ticks; trust is one tick shorter than the lease. One role. A
statement is one transaction; the node stops waiting for its answer at any time, and then
its commit may still arrive, once, while the node sends others. Such a commit keeps its
rows locked until it arrives, but other transactions read the earlier rows. The waits
after a change of the server, reservations and offers are left out.
*/

#ifndef L0
#define L0 3
#endif
#define LX 3
#define LEASE(i) (i == 0 -> L0 : LX)
#define TRUST(i) (i == 0 -> L0 - 1 : LX - 1)
#define NONE 7
#ifdef BUG_EARLY
#define OVER 2
#else
#define OVER 0
#endif
#define EARLIER 4       /* a session before a node's last one */

#define HEARTBEAT 1
#define ACQUIRE 2
#define RELEASE 3
#define UNCONFIRMED 4   /* releases what may have been acquired */

bool one_leader = true;

/* The tables. */
byte holder = NONE;     /* the session that holds the role */
byte left[2];           /* of the lease of a session */
bool ended[2];          /* its end is recorded */
byte earlier;           /* the same of an earlier session that holds the role */
bool earlierEnded = true;

/* The nodes. */
bool conn[2];
byte trust[2];
bool leads[2];
byte sent[2];           /* the statement under way */
byte waits[2];
bool done[2];           /* it is committed */
bool got[2];            /* it has changed its row */
bool changed[2];        /* the row has changed since the node read it */
bool unconfirmed[2];    /* the role may have been acquired */
byte stray[2];          /* a commit that the node no longer waits for */

#define LOCKED(n) (stray[n] == ACQUIRE || stray[n] == UNCONFIRMED || stray[n] == RELEASE)
#ifdef BUG_UNSETTLED
#define ROWSETTLED true
#else
#define ROWSETTLED (!LOCKED(0) && !LOCKED(1))
#endif
#define FREE(n) (holder == NONE || holder < 2 && ended[holder % 2] || holder == EARLIER && earlierEnded)

inline clearStatement(n) { sent[n] = 0; waits[n] = 0; done[n] = false; got[n] = false }

inline change() { changed[0] = true; changed[1] = true }

/* One transaction commits. */
inline commit(n, kind) {
	if
	:: kind == HEARTBEAT ->
		if :: !ended[n] -> left[n] = LEASE(n); got[n] = true :: else fi
	:: kind == ACQUIRE ->
		if
		:: (!ended[n]
#ifndef BUG_NOT_COMPARED
			&& !changed[n]
#endif
			) -> holder = n; change(); got[n] = true
		:: else
		fi
	:: kind == RELEASE || kind == UNCONFIRMED ->
		if :: holder == n -> holder = NONE; change(); got[n] = true :: else fi
	fi
}

/* The node stops waiting: the commit may arrive later, or never. */
inline abandon(n) {
	if
	:: sent[n] > 0 && !done[n] && stray[n] == 0 && sent[n] != HEARTBEAT -> stray[n] = sent[n]
	:: true
	fi;
	if :: sent[n] == ACQUIRE -> unconfirmed[n] = true :: else fi;
	clearStatement(n)
}

inline giveUp(n) {
	conn[n] = false; trust[n] = 0; leads[n] = false; abandon(n)
}

inline lead(n) {
	printf("node %d leads\n", n);
	leads[n] = true; unconfirmed[n] = false;
	one_leader = (leads[0] + leads[1] <= 1);
	assert(one_leader)
}

proctype node(byte i) {
	do
	/* Open: the last session is superseded; its roles stay held until its lease is over. */
	:: atomic { (!conn[i] && stray[i] == 0
#ifdef BUG_SUPERSEDED
		|| conn[i] && !leads[1 - i] && leads[i] && stray[i] == 0 && sent[i] == 0
#endif
		) ->
		printf("node %d opens a session\n", i);
		if
		:: holder == i ->
#ifdef BUG_SUPERSEDED
			holder = NONE
#else
			holder = EARLIER; earlier = left[i]; earlierEnded = ended[i]
#endif
		:: else
		fi;
		left[i] = LEASE(i); ended[i] = false; unconfirmed[i] = false; change();
		conn[i] = true }

	:: atomic { conn[i] && sent[i] == 0 ->
		printf("node %d sends a heartbeat\n", i);
		sent[i] = HEARTBEAT }
	:: atomic { sent[i] > 0 && !done[i] && (sent[i] != ACQUIRE || !LOCKED(0) && !LOCKED(1)) && (sent[i] == HEARTBEAT || stray[i] == 0) ->
		commit(i, sent[i]);
		printf("statement %d of node %d is committed\n", sent[i], i);
		done[i] = true }
	:: atomic { stray[i] > 0 ->
		printf("a late commit of node %d arrives: %d\n", i, stray[i]);
		commit(i, stray[i]); got[i] = false; stray[i] = 0 }
	:: atomic { stray[i] > 0 ->
		printf("a late commit of node %d is lost: %d\n", i, stray[i]);
		stray[i] = 0 }
	:: atomic { sent[i] == HEARTBEAT && done[i] ->
		if
#ifndef BUG_FROM_ANSWER
		:: !got[i] || waits[i] >= TRUST(i) -> printf("node %d gives up its session\n", i); giveUp(i)
#else
		:: !got[i] -> giveUp(i)
#endif
		:: else ->
			printf("node %d gets the answer of a heartbeat\n", i);
#ifdef BUG_FROM_ANSWER
			trust[i] = TRUST(i);
#else
			trust[i] = TRUST(i) - waits[i];
#endif
			clearStatement(i);
			if :: unconfirmed[i] -> sent[i] = UNCONFIRMED :: else fi
		fi }
	:: atomic { sent[i] == UNCONFIRMED && done[i] -> unconfirmed[i] = false; clearStatement(i) }
	/* A time limit of a call passes. */
	:: atomic { sent[i] > 0 && sent[i] != RELEASE ->
		printf("node %d stops waiting for statement %d\n", i, sent[i]);
		abandon(i) }

	/* tryAcquire: the row is read, an expired session is ended, then the role is acquired. */
	:: atomic { trust[i] > 0 && sent[i] == 0 && !leads[i] && holder == i && !ended[i] && ROWSETTLED ->
		printf("node %d finds that it has the role\n", i);
		lead(i) }
	:: atomic { trust[i] > 0 && sent[i] == 0 && !leads[i] && holder != i && FREE(i) ->
		printf("node %d acquires the role\n", i);
		changed[i] = false; sent[i] = ACQUIRE }
	:: atomic { holder < 2 && holder != i && trust[i] > 0 && sent[i] == 0 && !ended[holder % 2] && left[holder % 2] <= OVER ->
		printf("node %d ends the session of node %d\n", i, holder);
#ifdef BUG_NOT_RECORDED
		holder = NONE; change()
#else
		ended[holder % 2] = true
#endif
		}
	:: atomic { holder == EARLIER && trust[i] > 0 && earlier == 0 && !earlierEnded ->
		printf("node %d ends an earlier session\n", i);
		earlierEnded = true }
	:: atomic { sent[i] == ACQUIRE && done[i] ->
		if
		:: got[i] && trust[i] > 0 -> lead(i)
		:: else
		fi;
		clearStatement(i) }

	/* Release: an error ends the session. */
	:: atomic { leads[i] && sent[i] == 0 && trust[i] > 0 ->
		printf("node %d releases the role\n", i);
		leads[i] = false; sent[i] = RELEASE }
	:: atomic { sent[i] == RELEASE && done[i] -> clearStatement(i) }
	:: atomic { sent[i] == RELEASE ->
		printf("the release of node %d fails\n", i);
		giveUp(i) }
	od
}

inline age(n) {
	if :: sent[n] == HEARTBEAT && waits[n] < TRUST(n) -> waits[n]++ :: else fi;
	if :: left[n] > 0 -> left[n]-- :: else fi;
	if
	:: trust[n] > 1 -> trust[n]--
	:: trust[n] == 1 -> giveUp(n)
	:: else
	fi
}

proctype clock() {
	do
	:: atomic { true -> printf("a tick passes\n"); age(0); age(1); if :: earlier > 0 -> earlier-- :: else fi }
	od
}

init { atomic { ended[0] = true; ended[1] = true; run node(0); run node(1); run clock() } }
