// Package endreason has the stored texts for the end of a term.
package endreason

// The reasons given by a leader, and the reasons recorded for it by the next leader, or by
// the same node in a new session.
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
