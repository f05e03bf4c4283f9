package schema

import "time"

// SetNow replaces the clock that says for how long the schema remembers tables.
func (s *Schema) SetNow(now func() time.Time) { s.now = now }
