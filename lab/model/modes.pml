/*
The two modes of one installation: sessions with locks, and leases. A mode is changed only
while no node of the other one can trust a term.

part: modes : one node of each mode, which come and go, and operators who change the mode

variant: trusting-not-asked -DBUG_NO_TRUSTING modes one_leader : the change does not look for nodes whose sessions ended without a record
variant: leases-not-ended -DBUG_LEASES_RENEWED modes one_leader : an expired lease is not ended for good, and trust counts from the answer
variant: no-exclusion -DBUG_NO_LOCK modes one_leader : the change does not take the lock of the installation
variant: mode-not-checked -DBUG_NO_CHECK modes one_leader : a node opens without reading the mode
variant: mode-read-outside -DBUG_READ_OUTSIDE modes one_leader : a lease is written after the transaction that read the mode

code: postgres/internal/install/mode.go Installation.trySetMode sha256:72eeaa9ed55eedea
code: postgres/internal/install/mode.go Installation.livingLeases sha256:02ffcf2519f29564
code: postgres/internal/install/mode.go Installation.CheckMode sha256:e3a55877eb7db97f
code: postgres/internal/install/mode.go endLeases sha256:52f9837c0dafdc3d
code: postgres/internal/install/mode.go liveLeases sha256:8d5b7959cd4b6ee2
code: postgres/internal/install/installation.go Installation.Enter sha256:f593bc1b6ce16b07
code: postgres/internal/install/installation.go Installation.completeSchema sha256:1af36a982326f0b9
code: postgres/internal/install/installation.go Installation.refuseNodes sha256:1f14433ba39f635f
code: postgres/internal/install/trusting.go readTrustingNodes sha256:1e8ffbe7b38a32b7
code: lease/mode.go Backend.lockMode sha256:eec7e46b90659007
code: lease/mode.go Backend.refuseLiveNodes sha256:bca505208b0cabb2
code: lease/session.go Backend.Open sha256:e729f1ac7bd72e24
code: lease/session.go session.renewLease sha256:aba00a05fbce84d8

Abstractions. Time passes in ticks: a lease of 3, trust of 2. Each mode has one node, which
leads its own kind of term whenever it trusts its session, since the other mode does not
know it: the model asks only whether both trust at the same time. The server crashes at any
time. The change of the mode is one transaction.
*/

#define LEASE 3
#define TRUST 2

bool one_leader = true;

bool leases;            /* the mode of the installation */
bool shared;            /* the session holds the lock of the installation */
byte sessionLeft;       /* the row of the session: left of last_heartbeat + lease */
bool recorded = true;   /* the end of the session is recorded */
byte sessionTrust;
byte beat[2];           /* a heartbeat is under way: 1 + its age; 0 of the session, 1 of the lease */
bool written[2];
byte leaseLeft;         /* the row of the lease */
bool leaseEnded = true;
byte leaseTrust;
bool mayOpen;           /* the lease node has read the mode and writes its row later */

inline check() {
	one_leader = (sessionTrust == 0 || leaseTrust == 0);
	assert(one_leader)
}

proctype session() {
	do
	:: atomic { (!shared && sessionTrust == 0 && beat[0] == 0 && (!leases
#ifdef BUG_NO_CHECK
		|| true
#endif
		)) ->
		printf("a session opens\n");
		shared = true; sessionLeft = LEASE; recorded = false }
	:: atomic { shared && beat[0] == 0 -> beat[0] = 1 }
	:: atomic { shared && beat[0] > 0 && !written[0] -> sessionLeft = LEASE; written[0] = true }
	:: atomic { written[0] ->
		if
		:: beat[0] - 1 < TRUST -> printf("the session trusts\n"); sessionTrust = TRUST - (beat[0] - 1)
		:: else -> sessionTrust = 0
		fi;
		beat[0] = 0; written[0] = false; check() }
	:: atomic { sessionTrust > 0 && beat[0] == 0 -> printf("the session is given up\n"); sessionTrust = 0 }
	/* Another node sees its lock free and records its death, or it leaves. */
	:: atomic { !shared && sessionTrust == 0 && sessionLeft > 0 && beat[0] == 0 -> recorded = true; sessionLeft = 0 }
	:: atomic { shared && (sessionLeft == 0 || sessionTrust == 0 && beat[0] == 0) -> printf("the session ends\n"); shared = false }
	:: atomic { shared && !written[0] -> printf("the server crashes\n"); shared = false; beat[0] = 0 }
	od
}

proctype lease() {
	do
	:: atomic { (leaseTrust == 0 && beat[1] == 0 && !mayOpen && (leases
#ifdef BUG_NO_CHECK
		|| true
#endif
		)) ->
#ifdef BUG_READ_OUTSIDE
		mayOpen = true }
	:: atomic { mayOpen ->
		mayOpen = false;
#endif
		printf("a lease begins\n");
		leaseLeft = LEASE; leaseEnded = false; beat[1] = 1; written[1] = true }
	:: atomic { leaseTrust > 0 && beat[1] == 0 -> beat[1] = 1 }
	:: atomic { (beat[1] > 0 && !written[1]) ->
		if
#ifdef BUG_LEASES_RENEWED
		:: true -> leaseLeft = LEASE; leaseEnded = false; written[1] = true
#else
		:: !leaseEnded -> leaseLeft = LEASE; written[1] = true
		:: else -> leaseTrust = 0; beat[1] = 0
#endif
		fi }
	:: atomic { written[1] ->
		if
#ifdef BUG_LEASES_RENEWED
		:: true -> leaseTrust = TRUST
#else
		:: beat[1] - 1 < TRUST -> printf("the lease is trusted\n"); leaseTrust = TRUST - (beat[1] - 1)
		:: else -> leaseTrust = 0
#endif
		fi;
		beat[1] = 0; written[1] = false; check() }
	:: atomic { beat[1] > 0 && !written[1] -> printf("a heartbeat of the lease is lost\n"); beat[1] = 0 }
	od
}

proctype operator() {
	do
	:: atomic { (!leases
#ifndef BUG_NO_LOCK
		&& !shared
#endif
#ifndef BUG_NO_TRUSTING
		&& (recorded || sessionLeft == 0)
#endif
		) ->
		printf("the mode becomes leases\n"); leases = true }
	:: atomic { leases && leaseLeft == 0 && !shared ->
		printf("the mode becomes sessions\n"); leaseEnded = true; leases = false }
	od
}

inline less(x) { if :: x > 0 -> x-- :: else fi }

proctype server() {
	do
	:: atomic { true ->
		printf("a tick passes\n");
		less(sessionLeft); less(leaseLeft); less(sessionTrust); less(leaseTrust);
		if :: beat[0] > 0 && beat[0] <= TRUST -> beat[0]++ :: else fi;
		if :: beat[1] > 0 && beat[1] <= TRUST -> beat[1]++ :: else fi }
	od
}

init { atomic { run session(); run lease(); run operator(); run server() } }
