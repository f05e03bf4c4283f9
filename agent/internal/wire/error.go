package wire

import (
	"errors"
	"slices"

	"github.com/exactly-one/tenure"
)

// sentinels are the errors with an identity on the wire, by their names there.
var sentinels = map[string]error{
	"connection":   tenure.ErrConnection,
	"lock":         tenure.ErrLock,
	"refused":      tenure.ErrRefused,
	"session_lost": tenure.ErrSessionLost,
	"superseded":   tenure.ErrSuperseded,
	"no_leader":    tenure.ErrNoLeader,
	"held":         tenure.ErrHeld,
	"lock_timeout": tenure.ErrLockTimeout,
	"not_active":   tenure.ErrNotActive,
	"key_mismatch": tenure.ErrKeyMismatch,
	"invalid_role": tenure.ErrInvalidRole,
	"invalid":      tenure.ErrInvalidConfig,
	"unsupported":  tenure.ErrUnsupported,
	"name_taken":   tenure.ErrNameTaken,
	"last_node":    tenure.ErrLastNode,
	"unknown_node": tenure.ErrUnknownNode,
}

// maxText limits the text of an error in a message.
const maxText = 4096

// Error is an error in a message.
type Error struct {
	Text    string   `json:"text"`
	Matches []string `json:"matches,omitempty"`
}

// NewError encodes an error; nil stays nil.
func NewError(err error) *Error {
	if err == nil {
		return nil
	}
	text := err.Error()
	e := &Error{Text: text[:min(len(text), maxText)]}
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			e.Matches = append(e.Matches, name)
		}
	}
	slices.Sort(e.Matches)
	return e
}

// Decode returns an error matching the same sentinels, or nil.
func (e *Error) Decode() error {
	if e == nil {
		return nil
	}
	decoded := &remoteError{text: e.Text, matches: []error{tenure.ErrTenure}}
	for _, name := range e.Matches {
		if sentinel, known := sentinels[name]; known {
			decoded.matches = append(decoded.matches, sentinel)
		}
	}
	return decoded
}

// remoteError is an error of the other process.
type remoteError struct {
	text    string
	matches []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.matches }
