/*
Hand-over: the leader releases a role with a reservation for one node, while others try the
role at the same time; the target may be dead, and the server's clock may be set back.

part: handover : a leader, its target and a third node
part: handover-clock -DSTEP=4 : the clock is set back after the reservation

variant: not-bound -DBUG_NOT_BOUND handover binds : other nodes do not look at the reservation
variant: checked-once -DBUG_CHECKED_ONCE handover binds : a node checks the reservation before it locks and not again
variant: unlock-first -DBUG_UNLOCK_FIRST handover binds : the lock is released before the row is written
variant: examined-unchecked -DBUG_EXAMINED handover binds : a node that could not begin at once does not check the reservation again
variant: no-end -DBUG_NO_END handover ends : a reservation has no end
variant: clock-set-back -DBUG_ONE_SIDED handover-clock ends : a reservation that was made under a clock that was ahead lasts until that time

code: postgres/release.go session.Release sha256:dc1240b1ff2450c1
code: postgres/release.go session.resignation sha256:5227ea1b3d7dc687
code: postgres/queries.go stmtResign sha256:7857010db89bdeb2
code: postgres/queries.go stmtClose sha256:7f53e734f1482a6a
code: postgres/examine.go session.examine sha256:8019a933f0c94bcd
code: postgres/migrations/0001_functions.up.sql {take} sha256:d2adf3708db0f918
code: release.go session.release sha256:b8799d239a860d84
code: acquire.go session.applyHeldLocked sha256:fdcf295a10e33c01

Abstractions. Time passes in ticks; a reservation lasts 2. One role, one hand-over after the
first term; every node lives on one server, but the target may never try. A release and an
attempt are each taken apart into the steps that another session can see: the row is
written and locked, the lock is free, the commit; the reservation is read, the lock is
tried, the row is examined. STEP is by how many ticks the clock is set back, once; from
then on the role is kept for at most two reservations.
*/

#define RESERVED 2
#ifndef STEP
#define STEP 0
#endif
#define NONE 7

bool binds = true, ends = true;

byte locker;            /* node 0 leads at first */
bool ended;             /* the row: its term has ended, and the role is reserved for node 1 */
bool writing;           /* the row is locked by the release, which has not committed */
byte since;             /* ticks since the reservation, at most 9 */
byte back;              /* by how much the clock was set back since */
byte kept;              /* for how many ticks it was kept, since the step if there was one */
bool begun;             /* the next term has begun */
byte phase;             /* of the release */
byte stage[3];          /* of an attempt: 1 it may lock, 2 it has the lock and is not examined, 3 it may begin */

/* By the server's clock: BETWEEN ended_at - reservation AND reserved_until. */
#if defined(BUG_NO_END)
#define HOLDS ended
#elif defined(BUG_ONE_SIDED)
#define HOLDS (ended && since <= RESERVED + back)
#else
#define HOLDS (ended && since <= RESERVED + back && since + RESERVED >= back)
#endif

inline checkBinds(n) {
	binds = (n == 1 || since > RESERVED || back > 0 || phase == 0);
	assert(binds)
}

inline refused() {
	ends = (kept <= 2 * RESERVED);
	assert(ends)
}

proctype leader() {
	atomic { phase = 1; printf("the leader hands over to node 1\n") }
#ifdef BUG_UNLOCK_FIRST
	atomic { locker = NONE; printf("the lock is free\n") }
	atomic { if :: !begun -> ended = true; since = 0 :: else fi; printf("the row is committed\n") }
#else
	atomic { writing = true; printf("the row is written\n") }
	atomic { locker = NONE; printf("the lock is free\n") }
	atomic { writing = false; ended = true; since = 0; printf("the row is committed\n") }
#endif
}

proctype node(byte i) {
	do
	/* {take}: the reservation is read, then the lock is tried, then the row is locked. */
	:: atomic { stage[i] == 0 && !begun && i > 0 ->
		if
#ifndef BUG_NOT_BOUND
		:: i != 1 && HOLDS -> printf("node %d leaves the role to node 1\n", i); refused()
#endif
		:: else -> stage[i] = 1
		fi }
	:: atomic { stage[i] == 1 ->
		if
		:: locker == NONE && !begun -> printf("node %d has the lock\n", i); locker = i; stage[i] = 2
		:: else -> stage[i] = 0
		fi }
	:: atomic { stage[i] == 2 && !writing ->
		if
#if !defined(BUG_NOT_BOUND) && !defined(BUG_CHECKED_ONCE)
		:: i != 1 && HOLDS ->
#ifdef BUG_EXAMINED
			stage[i] = 3
#else
			printf("node %d unlocks the role, which is reserved\n", i);
			locker = NONE; stage[i] = 0; refused()
#endif
#endif
		:: else -> stage[i] = 3
		fi }
	:: atomic { stage[i] == 3 ->
		printf("node %d begins a term\n", i);
		checkBinds(i);
		begun = true; ended = false; stage[i] = 4 }
	od
}

proctype server() {
	do
	:: atomic { !begun && since < 9 -> printf("a tick passes\n"); if :: HOLDS -> kept++ :: else fi; if :: ended -> since++ :: else fi }
	:: atomic { ended && back == 0 && STEP > 0 -> printf("the clock is set back\n"); back = STEP; kept = 0 }
	od
}

init { atomic { run leader(); run node(1); run node(2); run server() } }
