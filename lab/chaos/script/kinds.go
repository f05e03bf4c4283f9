package script

import (
	"slices"
	"time"
)

// Need is what a machine or a server must have for a kind of fault.
type Need uint8

// What kinds of faults need.
const (
	Server    Need = 1 << iota // a private server, whose processes can be stopped
	SmallDisk                  // the server's data on a separate, small disk
	FakeClock                  // the server's clock can be set
	Relay                      // the node reaches the server through a relay
)

// Kind is a kind of fault.
type Kind struct {
	Name   string
	Layer  string
	Does   string
	Needs  Need
	OnNode bool
	OnRole bool
	// Alone: no other fault with Alone begins while this one lasts, because it affects
	// all nodes.
	Alone bool
	// Long: the fault lasts for longer than a lease. Otherwise it lasts for at most
	// half a lease, or for no time if Instant.
	Long, Instant bool
	// Named: only a run whose command names the kind or its layer has it.
	Named bool
	// By is the range of sizes.
	By [2]time.Duration
}

// Kinds lists all kinds of faults.
var Kinds = []Kind{
	{Name: "kill", Layer: "process", Does: "SIGKILL of a node; another process takes its place", OnNode: true},
	{Name: "terminate", Layer: "process", Does: "SIGTERM of a node, which shuts down gracefully; another process takes its place", OnNode: true},
	{Name: "stop-short", Layer: "process", Does: "SIGSTOP of a node for less than its lease", OnNode: true},
	{Name: "stop-long", Layer: "process", Does: "SIGSTOP of a node for longer than its lease", OnNode: true, Long: true},
	{Name: "freeze", Layer: "container", Does: "a node is frozen for longer than its lease, as a paused container is", OnNode: true, Long: true},
	{Name: "cut", Layer: "network", Does: "a node is cut off from the server", OnNode: true, Long: true},
	{Name: "cut-to-server", Layer: "network", Does: "what a node sends is lost; what the server sends arrives", OnNode: true, Long: true},
	{Name: "cut-to-node", Layer: "network", Does: "what the server sends to a node is lost; what the node sends arrives", OnNode: true, Long: true},
	{Name: "delay", Layer: "network", Does: "everything between a node and the server arrives later", OnNode: true, Long: true, Needs: Relay, By: [2]time.Duration{5 * time.Millisecond, 200 * time.Millisecond}},
	{Name: "reset", Layer: "network", Does: "all connections of a node are reset", OnNode: true, Instant: true, Needs: Relay},
	{Name: "server-kill", Layer: "server", Does: "SIGKILL of the server's first process; the server starts again", Needs: Server, Alone: true},
	{Name: "server-restart", Layer: "server", Does: "a fast restart of the server", Needs: Server, Alone: true, Instant: true},
	{Name: "server-stop", Layer: "server", Does: "SIGSTOP of all processes of the server", Needs: Server, Alone: true, Long: true},
	{Name: "backend-kill", Layer: "server", Does: "SIGKILL of one process of the server, which then recovers as after a crash", Needs: Server, Alone: true, Instant: true},
	{Name: "checkpoint", Layer: "server", Does: "checkpoints and large writes, again and again"},
	{Name: "disk-full", Layer: "disk", Does: "the server's disk is full", Needs: Server | SmallDisk, Alone: true},
	{Name: "clock-step", Layer: "clock", Does: "the server's clock is set, by at most the margin", Needs: Server | FakeClock, By: [2]time.Duration{-380 * time.Millisecond, 380 * time.Millisecond}},
	{Name: "clock-jump", Layer: "clock", Does: "the server's clock is ahead or behind by minutes, and comes back", Needs: Server | FakeClock, Alone: true, Long: true, Named: true, By: [2]time.Duration{-10 * time.Minute, 10 * time.Minute}},
	{Name: "terminate-sessions", Layer: "administrator", Does: "pg_terminate_backend of every session", Instant: true, Alone: true},
	{Name: "lock-table", Layer: "administrator", Does: "LOCK TABLE of the tables of terms and nodes", Alone: true},
	{Name: "read-only", Layer: "administrator", Does: "ALTER SYSTEM SET default_transaction_read_only = on", Alone: true},
	{Name: "statement-timeout", Layer: "administrator", Does: "ALTER SYSTEM SET statement_timeout = '50ms'", Long: true},
	{Name: "idle-timeout", Layer: "administrator", Does: "ALTER SYSTEM SET idle_session_timeout = '300ms'", Long: true},
	{Name: "step-down", Layer: "administrator", Does: "the leader of a role is asked to step down", OnRole: true, Instant: true},
	{Name: "drain", Layer: "administrator", Does: "a node is drained, and undrained", OnNode: true, Long: true},
	{Name: "migrate-down", Layer: "administrator", Does: "the schema is to be removed while nodes live, which must be refused", Instant: true, Alone: true},
	{Name: "delete-node", Layer: "administrator", Does: "the row of a node is deleted", OnNode: true, Instant: true},
	{Name: "vacuum-full", Layer: "administrator", Does: "VACUUM FULL of all tables of the installation", Instant: true},
	{Name: "open-transaction", Layer: "administrator", Does: "a transaction that locks the row of a role stays open, and the role's leader is asked to step down", OnRole: true, Long: true},
	{Name: "log-unreadable", Layer: "work", Does: "a column of the log has another name", Long: true},
	{Name: "view-pause", Layer: "work", Does: "the view is paused, and resumed", Long: true},
	{Name: "view-rebuild", Layer: "work", Does: "the view is rebuilt", Instant: true},
	{Name: "poison", Layer: "work", Does: "events become dead letters, which are replayed", Long: true},
	{Name: "schedule-pause", Layer: "work", Does: "a schedule is paused, and resumed", Long: true},
	{Name: "schedule-trigger", Layer: "work", Does: "a run of a schedule is requested", Instant: true},
	{Name: "receiver-down", Layer: "receiver", Does: "the receiver of webhooks answers 503", Long: true},
	{Name: "receiver-slow", Layer: "receiver", Does: "the receiver of webhooks takes longer to answer than the publisher waits", Long: true},
}

// Find returns the kind with a name.
func Find(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}
