// Package doctor defines the findings of checks for obstacles to elections on a database.
// Backends return them from their method Diagnose.
package doctor

// Finding is the result of one check.
type Finding struct {
	Name     string // of the check
	Severity Severity
	Detail   string // the result
	Advice   string // what to do, if anything
}

// Severity is how serious a [Finding] is.
type Severity uint8

// The severities.
const (
	OK      Severity = iota // no fault
	Warning                 // elections work, but something needs attention
	Failure                 // no node can open a session
)

// String returns "ok", "warning" or "failure".
func (s Severity) String() string {
	switch s {
	case OK:
		return "ok"
	case Warning:
		return "warning"
	default:
		return "failure"
	}
}

// MarshalText returns the severity's name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
