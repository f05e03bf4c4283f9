package sessiontest

import "github.com/exactly-one/tenure"

// Feature is something that a backend may have beyond the contract of the seam.
// Its caller says so: a backend that lost a feature fails, and is not skipped.
type Feature uint8

// The features.
const (
	// Registry: the sessions implement tenure.RegistrySession, and requests to drain
	// reach nodes.
	Registry Feature = 1 << iota
	// UniqueNames: SessionOptions.UniqueName is kept.
	UniqueNames
)

// featured checks that the backend has a registry exactly if its caller says so.
func featured(s *suite) {
	a := s.open("a", timing())
	if _, has := a.Session.(tenure.RegistrySession); has != s.has(Registry) {
		s.Errorf("the session implements tenure.RegistrySession: %t; the caller says %t", has, s.has(Registry))
	}
}
