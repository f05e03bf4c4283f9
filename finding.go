package tenure

// Finding is one answer of a backend that was asked what would break an election
// on its database.
type Finding struct {
	Name     string // what was looked at
	Severity Severity
	Detail   string // what was found
	Advice   string // what to do; empty if nothing
}

// Severity says how bad a [Finding] is.
type Severity uint8

// The severities.
const (
	SeverityOK      Severity = iota // as it should be
	SeverityWarning                 // elections work, but something is worth a look
	SeverityFailure                 // no node could open a session
)

// String returns "ok", "warning" or "failure".
func (s Severity) String() string {
	switch s {
	case SeverityOK:
		return "ok"
	case SeverityWarning:
		return "warning"
	default:
		return "failure"
	}
}

// MarshalText returns the severity's name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
