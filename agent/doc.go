// Package agent connects nodes to the agent of their host, one process with two database
// connections for all of them. Use it if the database has too few connections for the
// campaigning processes:
//
//	node, err := tenure.Open(ctx, agent.New("/run/tenure/agent.sock"), tenure.Config{Name: "billing-3"})
//
// The agent is the command "tenure agent", or package agent/server. Both need Linux.
// docs/howto/share-connections.md shows how to run it, with its promises and its cost.
//
// # Design
//
// The agent has one session with the database, as any node has. To the database it is one
// node, with the roles of all nodes of the host. Each node has a session with the agent
// over a Unix socket, and the agent decides between them: a role of its session belongs to
// one node at a time. Each change of leader begins a new term in the database, also within
// the host. So term numbers increase for each of them (Invariant 2), and a fenced
// transaction of the old term delays the new one (Invariant 3).
//
// Trust. The agent's trust ends at the start of its last acknowledged heartbeat + lease -
// margin. This moment is on the boot clock: all processes of the host share it, and it
// continues while the machine is suspended. The agent alone answers a heartbeat of a node,
// with this moment. The node trusts its terms until its own heartbeat + its lease -
// margin, or until this moment, whichever is earlier ([tenure.Session], TrustLimit). So no
// node trusts a term longer than the agent does, whatever happens to the agent, and the
// database need not know the nodes.
//
// A node ends. The agent releases its roles when the node's end of the socket is closed:
// the process is dead, or its engine has closed the session. The engine does so when trust
// has ended and the work has returned (Invariant 4). A silent, stopped node loses its
// roles when its lease has expired at the agent, later than its own trust. Nothing else
// releases a role of a node without its consent. If the agent cannot reach a node, it
// closes only its own direction of the connection and waits for one of the two.
//
// The agent ends. If the agent is stopped, or the database cannot be reached, no heartbeat
// is acknowledged and the trust of all nodes ends in time. If the agent is killed, its
// nodes notice it immediately, unless they are stopped themselves or wait for a processor.
// The server must not free the locks before they have noticed. So the agent passes every
// node a duplicate of the connection with the locks. The node never uses the duplicate and
// closes it when its work has returned. Until the last node has closed it, the connection
// exists, and the server keeps the locks, at most for one lease after the agent's last
// statement. The same holds for each other end of the agent's session.
//
// The guardian of "tenure run" keeps a duplicate of the node's end of the socket,
// in the same way as it keeps the connection of a node without an agent.
//
// Cost. Heartbeats of nodes stay on the host; the agent sends twice as many as a node
// would. Attempts to acquire roles are merged into one statement. If another host was
// found to hold a role, the role is not tried again for other nodes until a notification,
// or until half of CheckInterval has passed.
//
// Limits. Frames are at most 4 MiB, a call has at most 1,000 roles, a connection one call
// at a time and one unread event, an agent 1,000 connections. The socket has the mode 0600
// in a directory without write access for other users, and each side checks the other
// one's user: the same user or root.
//
// # What is different
//
// Nodes of an agent are not in the registry, since each row there needs a heartbeat
// to the database. So clusters, drains, spreads and unique names need a direct
// connection; sessions of this package do not implement [tenure.RegistrySession].
// On other hosts, leaders and the history show the name of the node with the id of its
// agent, and a role can be handed over to an agent but not to a chosen node of it.
// Terms of this package cannot fence transactions with package postgres, which
// rejects them. TENURE_TERM and [tenure.Term.Number] are valid fencing tokens.
package agent
