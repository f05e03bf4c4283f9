package metrics

import "github.com/exactly-one/tenure"

// divide returns the elections with their own series, and the elections to sum.
func (c Config) divide(elections []tenure.ElectionStats) (own, others []tenure.ElectionStats) {
	own = elections
	if c.Roles != nil {
		own = nil
		for _, e := range elections {
			if c.Roles(e.Role) {
				own = append(own, e)
			} else {
				others = append(others, e)
			}
		}
	}
	if c.MaxRoles >= 0 && len(own) > c.MaxRoles {
		return nil, elections
	}
	return own, others
}

// sum holds the summable values of elections.
type sum struct {
	led                                int
	attempts, failovers, terms, losses uint64
}

func sumOf(elections ...tenure.ElectionStats) sum {
	var s sum
	for _, e := range elections {
		if e.Term > 0 {
			s.led++
		}
		s.attempts += e.Attempts
		s.failovers += e.Failovers
		s.terms += e.Terms
		s.losses += e.Losses
	}
	return s
}
