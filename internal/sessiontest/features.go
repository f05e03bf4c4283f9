package sessiontest

import "github.com/exactly-one/tenure"

// Feature is an optional part of the contract of a backend. The caller of Run declares the
// features, so that a backend without one of them fails instead of being skipped.
type Feature uint8

// The features.
const (
	// Registry: sessions implement tenure.RegistrySession, and requests to drain reach
	// nodes.
	Registry Feature = 1 << iota
	// UniqueNames: the backend enforces SessionOptions.UniqueName.
	UniqueNames
	// Offers: the backend asks the target of a hand-over whether it campaigns.
	Offers
	// LeaderNames: the records have the names of AcquireRequest.NodeName. An agent has
	// the names of its clients instead.
	LeaderNames
)

// featured checks that the backend has a registry if and only if that is declared.
func featured(s *suite) {
	a := s.open("a", timing())
	if _, has := a.Session.(tenure.RegistrySession); has != s.has(Registry) {
		s.Errorf("the session implements tenure.RegistrySession: %t; declared: %t", has, s.has(Registry))
	}
}
