// Package endreason has the texts that the database stores for the end of a term.
package endreason

// The reasons that a leader gives, and those that the next leader, or the same node
// in a new session, records for it.
const (
	Resigned      = "resigned"
	Completed     = "completed"
	SteppedDown   = "stepped_down"
	HandedOver    = "handed_over"
	Shutdown      = "shutdown"
	Crashed       = "crashed"
	LeaseExpired  = "lease_expired"
	ServerChanged = "server_changed"
)
