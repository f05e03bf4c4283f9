package observer

import "time"

// The fields that the observer reads. It has types of its readers, not those of the product.

type statusShown struct {
	Well    bool
	Summary string
	Roles   []struct {
		Role, State string
		Leader      *struct {
			Term       int64
			NodeName   string    `json:"node_name"`
			AcquiredAt time.Time `json:"began_at"`
		}
		Sessions []struct{ PID int32 }
		Last     *struct {
			NodeName string     `json:"node_name"`
			Ended    time.Time  `json:"ended_at"`
			Reason   string     `json:"end_reason"`
			Cause    string     `json:"end_cause"`
			Next     *time.Time `json:"next_by"`
		}
	}
}

type termShown struct {
	Role     string
	Term     int64
	NodeName string     `json:"node_name"`
	Began    time.Time  `json:"began_at"`
	Ended    *time.Time `json:"ended_at"`
	Reason   string     `json:"end_reason"`
	By       string     `json:"requested_by"`
	Cause    string     `json:"end_cause"`
	Vacant   *float64   `json:"vacant_seconds"`
	Silent   *float64   `json:"silent_seconds"`
}

type incidentShown struct {
	Kind     string
	Began    time.Time  `json:"began_at"`
	Ended    *time.Time `json:"ended_at"`
	Lasted   float64    `json:"lasted_seconds"`
	Sentence string
	By       string `json:"requested_by"`
	Nodes    []struct{ Name string }
	Moves    []struct {
		Role, From, To string
		Reason         string `json:"end_reason"`
	}
}

type nodeShown struct {
	ID, Name, Status string
	Replaced         bool
	Leads            []string
	Started          time.Time `json:"started_at"`
	Uptime           float64   `json:"uptime_seconds"`
}

type gapShown struct {
	Without *float64 `json:"without_leader_seconds"`
	Vacant  *float64 `json:"vacant_seconds"`
	Silent  *float64 `json:"silent_seconds"`
}

// failoversShown is the data of the page on failovers.
type failoversShown struct {
	Failovers, Moves, Outages, Day, Total int
	Median, P95, P99, Max                 *gapShown
	Points                                [][3]float64
	Rows                                  []struct {
		gapShown

		Kind, Role, Previous string
		Reason               string    `json:"end_reason"`
		At                   time.Time `json:"time"`
		NodeName             string    `json:"node_name"`
		Roles                int
	}
}

// nowShown is the data of the overview.
type nowShown struct {
	Now struct {
		Health struct {
			Level, Sentence, Also string
			Since                 *time.Time
		}
		Roles, Led, Silent, Vacant, Living, Firing, Silenced int
		AtRest                                               int `json:"at_rest"`
		Nodes                                                []nodeOnPage
		UnreadSince                                          *time.Time `json:"unread_since"`
	}
	Work struct {
		Processors []struct {
			Name   string `json:"processor"`
			Status string
		}
		Schedules []struct {
			Name string `json:"schedule"`
			Last struct{ State string }
		}
	}
	Alerts []struct {
		Name, State string
		Since       time.Time
		SilencedBy  string `json:"silenced_by"`
	}
	Incidents []incidentOnPage
}

type incidentOnPage struct {
	ID, Kind, Sentence string
	Began              time.Time  `json:"began_at"`
	Ended              *time.Time `json:"ended_at"`
	Lasted             float64    `json:"lasted_seconds"`
	By                 string     `json:"requested_by"`
	Roles, Vacant      int
}

type nodeOnPage struct {
	Name    string
	State   string `json:"status"`
	Leads   int    `json:"led_roles"`
	Drained bool
	Started time.Time `json:"started_at"`
	Heard   time.Time `json:"last_heartbeat"`
}

type roleOnPage struct {
	Name     string `json:"role"`
	State    string
	NodeName string     `json:"node_name"`
	Began    time.Time  `json:"began_at"`
	Ended    *time.Time `json:"ended_at"`
	Reason   string     `json:"end_reason"`
	By       string     `json:"requested_by"`
	Without  *float64   `json:"without_leader_seconds"`
	Previous string
}

// history returns the terms of a role, the latest first.
func (s *scene) history(role string) (terms []termShown) {
	s.Helper()
	var shown struct{ Terms []termShown }
	s.json(&shown, "history", "--role", role)
	return shown.Terms
}

// incidents returns all incidents, the latest first.
func (s *scene) incidents() []incidentShown {
	s.Helper()
	var shown struct{ Incidents []incidentShown }
	s.json(&shown, "history", "--incidents")
	return shown.Incidents
}

// latest returns the latest incident of a kind.
func (s *scene) latest(kind string) (found incidentShown) {
	s.Helper()
	all := s.incidents()
	for _, i := range all {
		if i.Kind == kind {
			return i
		}
	}
	s.Errorf("no incident of the kind %s among %v", kind, kinds(all))
	return found
}

// kinds returns the kinds of incidents, the latest first.
func kinds(incidents []incidentShown) (kinds []string) {
	for _, i := range incidents {
		kinds = append(kinds, i.Kind)
	}
	return kinds
}

func (s *scene) status() (shown statusShown) { s.Helper(); s.json(&shown, "status"); return shown }

// nodes returns the nodes of a name as the command lists them.
func (s *scene) nodes(name string) (found []nodeShown) {
	s.Helper()
	var shown struct{ Nodes []nodeShown }
	s.json(&shown, "node", "list")
	for _, n := range shown.Nodes {
		if n.Name == name {
			found = append(found, n)
		}
	}
	return found
}

// now returns the data of the overview.
func (s *scene) now() (shown nowShown) { s.Helper(); s.page(&shown, "/api/now"); return shown }

// failovers returns the data of the page on failovers when it has some rows.
func (s *scene) failovers(role string, rows int) (shown failoversShown) {
	s.Helper()
	s.eventually("the page shows all changes of leaders", func() bool {
		shown = failoversShown{}
		s.page(&shown, "/api/failovers?limit=500&role="+role)
		return shown.Total >= rows
	})
	return shown
}

// onPage returns a role as the page lists it, when ok accepts it.
func (s *scene) onPage(role string, ok func(roleOnPage) bool) (found roleOnPage) {
	s.Helper()
	s.eventually("the page shows the state of "+role, func() bool {
		var shown struct{ Rows []roleOnPage }
		s.page(&shown, "/api/roles?search="+role)
		for _, r := range shown.Rows {
			if r.Name == role {
				found = r
				return ok(r)
			}
		}
		return false
	})
	return found
}
