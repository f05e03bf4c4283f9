/*
An agent that shares its session among the nodes of a host: trust of nodes is limited by
the agent's, nodes keep the connection of a dead agent open, and another host waits.

part: agent-one -DNODES=1 -DLEASE=4 -DNODELEASE=5 : one node of the host, whose lease is longer than the agent's, and a rival on another one
part: agent-two -DNODES=2 -DLEASE=3 -DNODELEASE=2 : two nodes of the host and a rival

variant: agent-trust-ignored -DBUG_OWN_TRUST agent-one one_leader : a node trusts its own lease and not the end of the agent's trust
variant: no-duplicate -DBUG_NO_DUPLICATE agent-one one_leader : the server frees the locks when the agent dies
variant: expires-early -DBUG_EXPIRES_EARLY agent-one one_leader : the agent releases the roles of a silent node before its trust has ended
variant: two-holders -DBUG_TWO_HOLDERS agent-two one_leader : the agent gives a role that it holds to a second node
variant: winds-down-early -DBUG_WINDS_DOWN agent-one one_leader : an agent that gives up its session closes its connection immediately
variant: agent-leaves-lost -DBUG_LEAVES_LOST agent-one one_leader : an agent that ends closes the connection of a lost session immediately
variant: agent-leaving-answers -DBUG_LEAVING_ANSWERS agent-one one_leader : an agent that ends answers the heartbeats of its nodes
variant: agent-releases-working -DBUG_RELEASES_LOST agent-one one_leader : the agent releases the roles of a node that it cannot talk to

code: agent/session.go session.Heartbeat sha256:09fcd234434bc4fe
code: agent/session.go session.TrustLimit sha256:de48a329df51e5ef
code: agent/session.go sessionLost sha256:7da00bd5f5b37e8e
code: trust.go limitTrust sha256:eb82c2adc7a4c1a5
code: agent/server/trust.go trust.extend sha256:c3f4e1b77c578a50
code: agent/server/trust.go trust.valid sha256:1f1ceac05a7df0be
code: agent/server/serve.go host.heartbeat sha256:dcdeabb747650673
code: agent/server/client.go client.heartbeat sha256:47b68284db5b5338
code: agent/server/client.go client.arrived sha256:2bf804fa9ca8c7fa
code: agent/server/client.go client.run sha256:e04a4d332e29c929
code: agent/server/client.go client.writeFirst sha256:891fe3d70c7b0eaf
code: agent/server/client.go host.disconnected sha256:c7b32dcf43c18c46
code: agent/server/client.go host.expireLocked sha256:aee2e6238390c1e4
code: agent/server/arbiter.go host.endClient sha256:644409090ee7866d
code: agent/server/arbiter.go host.release sha256:ade36a730e29cbd1
code: agent/server/arbiter.go host.decideLocked sha256:5f1d4d803bedaf7d
code: agent/server/arbiter.go host.applyLocked sha256:43ac3e1f5bb1983b
code: agent/server/server.go server.finish sha256:84973bd4f895b4df
code: agent/server/end.go host.beginLeave sha256:c93bc37b7fcfe22e
code: agent/server/end.go host.close sha256:2e14c4b91a71fa29
code: agent/server/end.go host.fail sha256:e56389e47dd0177d
code: agent/server/end.go host.windDown sha256:09a1d9dadf6d5a1d

Abstractions. Time passes in ticks; margins are 1. One
agent lives once; its node sessions do not reconnect. The session of the agent with the
server is that of the model of the session, with heartbeats that are late or lost. A node
asks for the role in one step and gets the answer later. The rival takes the role whenever
its lock is free, and gives it up at any time. Reservations within the host are left out.
*/

#ifdef BUG_EXPIRES_EARLY
#define EXPIRES 1
#else
#define EXPIRES NODELEASE
#endif
#define AGENT 1
#define RIVAL 2

bool one_leader = true;

/* The server. */
byte locker;            /* 0, AGENT or RIVAL */
bool open = true;       /* it has the session of the agent */
byte idle;              /* ticks since a heartbeat of the agent */

/* The agent. */
bool alive = true;      /* its process */
bool lost;              /* it has given up its session */
byte trust = LEASE - 1;
byte limitOver;         /* since it gave up: until its connection is closed at the latest */
bool leaving;           /* it was asked to end, and its nodes were told */
byte leaveOver;         /* since then: until it closes its connection at the latest */
byte beat;              /* a heartbeat is under way: 1 + its age */
bool written;
byte held;              /* the node for which it holds the role, plus 1 */
bool askedFor;          /* an attempt is under way */

/* The nodes. */
bool connected[NODES] = true;
byte limit[NODES];          /* left of the end of the agent's trust, as of the answer under way */
byte call[NODES];           /* a heartbeat is under way: 1 + its age */
bool answered[NODES];
byte lease[NODES];          /* left of the node's lease at the agent */
byte nodeTrust[NODES];
bool granted[NODES];
bool leads[NODES];
bool work[NODES];
bool rival;
#if NODES > 1
#define ALONE (!connected[0] && !connected[1])
#else
#define ALONE !connected[0]
#endif

inline check() {
	#if NODES > 1
	one_leader = (leads[0] + leads[1] + rival <= 1);
#else
	one_leader = (leads[0] + rival <= 1);
#endif
	assert(one_leader)
}

inline freeLock() {
	if :: locker == AGENT -> locker = 0 :: else fi;
	held = 0
}

/* The kernel keeps the connection while a process has a duplicate. */
inline endSession() {
	open = false; freeLock();
	if :: !written -> beat = 0 :: else fi
}

inline nodeGivesUp(n) {
	nodeTrust[n] = 0; leads[n] = false; granted[n] = false; call[n] = 0; answered[n] = false; limit[n] = 0
}

proctype node(byte i) {
	do
	:: atomic { connected[i] && call[i] == 0 && !granted[i] && alive ->
		printf("node %d sends a heartbeat to the agent\n", i);
		call[i] = 1 }
	:: atomic { (call[i] > 0 && !answered[i] && alive && !lost && trust > 0 && lease[i] > 0 && (!leaving
#ifdef BUG_LEAVING_ANSWERS
		|| true
#endif
		)) ->
		printf("the agent answers node %d\n", i);
		lease[i] = NODELEASE; limit[i] = trust; answered[i] = true }
	:: atomic { answered[i] ->
		if
#ifdef BUG_OWN_TRUST
		:: call[i] < NODELEASE - 1 + 1 -> nodeTrust[i] = NODELEASE - call[i]; call[i] = 0; answered[i] = false; limit[i] = 0
#else
		:: call[i] < NODELEASE - 1 + 1 && limit[i] > 0 ->
			printf("node %d gets the answer\n", i);
			nodeTrust[i] = (limit[i] < NODELEASE - call[i] -> limit[i] : NODELEASE - call[i]);
			call[i] = 0; answered[i] = false; limit[i] = 0
#endif
		:: else -> nodeGivesUp(i)
		fi }
	:: atomic { connected[i] && nodeTrust[i] > 0 && !work[i] && !granted[i] && call[i] == 0 && alive && !lost && open && lease[i] > 0 && (held == 0 && locker == 0
#ifdef BUG_TWO_HOLDERS
		|| locker == AGENT
#endif
		) ->
		printf("the agent takes the role for node %d\n", i);
		lease[i] = NODELEASE; locker = AGENT; held = i + 1; granted[i] = true }
	:: atomic { granted[i] ->
		granted[i] = false;
		if
		:: nodeTrust[i] > 0 ->
			printf("node %d leads\n", i);
			leads[i] = true; work[i] = true; check()
		:: else
		fi }
	:: atomic { leads[i] -> printf("node %d ends its term\n", i); leads[i] = false }
	:: atomic { work[i] && !leads[i] -> printf("the work of node %d returns\n", i); work[i] = false }
	:: atomic { connected[i] && nodeTrust[i] > 0 && !work[i] && !granted[i] && held == i + 1 && alive && !lost && open ->
		printf("node %d releases the role\n", i);
		freeLock() }
	/* The node sees that the agent is gone, leaves, or has given up its session: trust ends. */
	:: atomic { connected[i] && (!alive || lost || leaving || lease[i] == 0) && !granted[i] ->
		printf("node %d gives up its session with the agent\n", i);
		nodeGivesUp(i) }
	/* It closes its connections when the work has returned. */
	:: atomic { connected[i] && nodeTrust[i] == 0 && !work[i] && !granted[i] && call[i] == 0 ->
		printf("node %d closes its connection\n", i);
		connected[i] = false;
		if :: alive && !lost && held == i + 1 -> freeLock() :: else fi }
	/* Its process dies. */
	:: atomic { connected[i] ->
		printf("node %d dies\n", i);
		nodeGivesUp(i); work[i] = false; connected[i] = false;
		if :: alive && !lost && held == i + 1 -> freeLock() :: else fi }
	/* The agent ends the session of a node that is silent. */
	:: atomic { (connected[i] && alive && !lost && held == i + 1 && (lease[i] <= NODELEASE - EXPIRES
#ifdef BUG_RELEASES_LOST
		|| true
#endif
		)) ->
		printf("the agent releases the roles of node %d, which is silent\n", i);
		lease[i] = 0; freeLock() }
	od
}

proctype agent() {
	do
	:: atomic { alive && !lost && open && beat == 0 ->
		printf("the agent sends a heartbeat\n");
		beat = 1 }
	:: atomic { open && beat > 0 && !written ->
		printf("the server commits it\n");
		idle = 0; written = true }
	:: atomic { written && (alive && !lost) ->
		if
		:: beat - 1 >= LEASE - 1 -> trust = 0; lost = true; limitOver = 1
		:: else -> printf("the agent gets the answer\n"); trust = LEASE - 1 - (beat - 1)
		fi;
		beat = 0; written = false }
	/* It gives up its session: its connection ended, or another error. */
	:: atomic { alive && !lost ->
		printf("the agent gives up its session\n");
		lost = true; limitOver = trust + 1; trust = 0 }
	/* windDown: when all nodes have closed theirs, or no term can be trusted. */
	:: atomic { (alive && lost && open && (ALONE || limitOver == 0
#ifdef BUG_WINDS_DOWN
		|| true
#endif
		)) ->
		printf("the agent closes its connection\n");
		leaveOver = 0; endSession() }
	:: atomic { alive && !leaving && open ->
		printf("the agent is asked to end\n");
		leaving = true; leaveOver = LEASE }
	/* finish: when all nodes have closed theirs, or after one lease. */
	:: atomic { (alive && leaving && open && ((!lost && ALONE) || leaveOver == 0
#ifdef BUG_LEAVES_LOST
		|| lost
#endif
		)) ->
		printf("the agent that ends closes its connection\n");
		lost = true; trust = 0; leaveOver = 0; limitOver = 0; endSession() }
	:: atomic { alive ->
		printf("the agent is killed\n");
		alive = false; trust = 0; lost = true; limitOver = 0; leaveOver = 0; if :: !written -> beat = 0 :: else written = false; beat = 0 fi
#ifdef BUG_NO_DUPLICATE
		;
		if :: open -> endSession() :: else fi
#endif
		}
	:: atomic { !alive && open && ALONE ->
		printf("the connection of the agent ends\n");
		endSession() }
	od
}

inline age(n) {
	if :: call[n] > 0 && call[n] < NODELEASE + 1 -> call[n]++ :: else fi;
	if :: limit[n] > 0 -> limit[n]-- :: else fi;
	if :: lease[n] > 0 -> lease[n]-- :: else fi;
	if
	:: nodeTrust[n] > 1 -> nodeTrust[n]--
	:: nodeTrust[n] == 1 -> nodeGivesUp(n)
	:: else
	fi
}

proctype server() {
	do
	:: atomic { true ->
		printf("a tick passes\n");
		age(0);
#if NODES > 1
		age(1);
#endif
		if :: beat > 0 && beat < LEASE + 1 -> beat++ :: else fi;
		if :: idle < LEASE -> idle++ :: else fi;
		if :: limitOver > 0 -> limitOver-- :: else fi;
		if :: leaveOver > 0 -> leaveOver-- :: else fi;
		if
		:: trust > 1 -> trust--
		:: trust == 1 ->
			trust = 0;
			lost = true; limitOver = 1
		:: else
		fi }
	:: atomic { open && idle >= LEASE -> printf("the idle timer ends the session of the agent\n"); endSession() }
	:: atomic { locker == 0 ->
		printf("the rival leads\n");
		locker = RIVAL; rival = true; check() }
	:: atomic { rival -> rival = false; locker = 0 }
	od
}

init {
	atomic {
		lease[0] = NODELEASE;
		run node(0);
#if NODES > 1
		lease[1] = NODELEASE;
		run node(1);
#endif
		run agent(); run server()
	}
}
