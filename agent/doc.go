// Package agent connects nodes to the agent of their host: one process that holds
// the two database connections for all of them. Use it where more processes
// campaign than the database has connections for:
//
//	node, err := tenure.Open(ctx, agent.New("/run/tenure/agent.sock"), tenure.Config{Name: "billing-3"})
//
// The agent is the command "tenure agent", or package agent/server. Both need
// Linux. docs/howto/share-connections.md shows how to run it, what it promises and what it costs.
//
// # Design
//
// The agent has one session with the database, as any node has. To the database it
// is one node, which holds the roles of all nodes of the host. Each node has a
// session with the agent over a Unix socket, and the agent decides between them: a
// role that its session holds belongs to one node at a time. Each change of leader
// begins a new term in the database, also within the host, so term numbers increase
// for each of them (Invariant 2), and a transaction that the old term fenced delays
// the new one (Invariant 3).
//
// Trust. The agent's trust ends at the start of its last acknowledged heartbeat +
// lease - margin, on the boot clock, which all processes of the host share and
// which continues while the machine is suspended. A heartbeat of a node is answered
// by the agent alone, with that moment. The node trusts its terms until its own
// heartbeat + its lease - margin, or until that moment, whichever is earlier
// ([tenure.Session], TrustLimit). So no node trusts a term longer than the agent
// does, whatever happens to the agent, and the database need not know the nodes.
//
// A node ends. The agent releases its roles when the node's end of the socket is
// closed: the process is dead, or its engine has closed the session, which it does
// when trust has ended and the work has returned (Invariant 4). A node that is
// silent, because it is stopped, loses its roles when its lease has expired at the
// agent, which is later than its own trust. Nothing else releases a role of a node
// without its consent: an agent that cannot talk to a node closes only its own
// direction of the connection and waits for one of the two.
//
// The agent ends. If the agent is stopped, or the database cannot be reached, no
// heartbeat is acknowledged and the trust of all nodes ends in time. If the agent
// is killed, its nodes notice it immediately, unless they are stopped themselves or
// wait for a processor. The server must not free the locks before they have. So the
// agent passes every node a duplicate of the connection that holds the locks, which
// the node never uses, and closes when its work has returned: until the last node
// has done that, the connection exists, and the server keeps the locks, at most for
// one lease after the agent's last statement. The same holds for each other end of
// the agent's session.
//
// The guardian of "tenure run" keeps a duplicate of the node's end of the socket,
// in the same way as it keeps the connection of a node without an agent.
//
// Cost. Heartbeats of nodes stay on the host; the agent sends twice as many as a
// node would. Attempts to acquire roles are merged
// into one statement. A role that another host was found to hold is not tried again
// for other nodes until a notification, or until half of CheckInterval has passed.
//
// Limits. Frames are at most 4 MiB, a call has at most 1,000 roles, a connection
// one call at a time and one unread event, an agent 1,000 connections. The socket
// has the mode 0600 in a directory that no other user can write to, and each side
// checks that the other one runs as the same user or as root.
//
// # What is different
//
// Nodes of an agent are not in the registry, since each row there needs a heartbeat
// to the database. So clusters, drains, spreads and unique names need a direct
// connection; sessions of this package do not implement [tenure.RegistrySession].
// On other hosts, leaders, history and requests show the agent in the place of its
// nodes, and a role can be handed over to an agent but not to a chosen node of it.
// Terms of this package cannot fence transactions with package postgres, which
// rejects them. TENURE_TERM and [tenure.Term.Number] are valid fencing tokens.
package agent
