package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
)

// Elections collects the statistics of a node and its elections, by [tenure.Node.Stats],
// under PREFIX_leader_.
type Elections struct {
	node     *tenure.Node
	config   Config
	families families

	// Per role.
	isLeader, attempts, held, failovers, terms, losses, term, state family
	// Of the node.
	roles, led, connected, trust, trustWindow, transitions, events family
	reconnects, sessionFailures, heartbeats, heartbeatFailures     family
	vacancies, waiting, oldest, delays, panics                     family
}

var _ prometheus.Collector = (*Elections)(nil)

// NewElections returns a collector for a node and all its current and future
// elections.
func NewElections(node *tenure.Node, config Config) *Elections {
	config = config.withDefaults()
	f := newFamilies(config, "leader")
	c := &Elections{
		node: node, config: config,

		isLeader:  f.gauge("is_leader", "1 if this node leads the role, 0 otherwise.", "role"),
		attempts:  f.counter("elections_total", "Attempts of this node to acquire the role, successful or not.", "role"),
		held:      f.gauge("tenure_seconds", "How long this node has led the role, 0 if it does not lead.", "role"),
		failovers: f.counter("failovers_total", "Terms of this node that followed a term of another node.", "role"),
		terms:     f.counter("terms_total", "Terms of this node.", "role"),
		losses:    f.counter("losses_total", "Terms that this node lost instead of ending them itself.", "role"),
		term:      f.gauge("term", "The number of this node's current term, 0 if it does not lead.", "role"),
		state:     f.gauge("state", "1 for the state that the election of the role is in.", "role", "state"),

		roles:       f.gauge("roles", "Roles of this node by the state of their elections.", "state"),
		led:         f.gauge("roles_led", "Roles that this node leads."),
		connected:   f.gauge("connected", "1 if the node has a session with its database within the trust window, 0 otherwise. During an outage of the database it is 0 on all nodes."),
		trust:       f.gauge("trust_remaining_seconds", "How long the node may still lead if no further heartbeat is acknowledged."),
		trustWindow: f.gauge("trust_window_seconds", "How long the node may lead after a heartbeat: the lease minus its margin."),
		transitions: f.counter("transitions_total", "Changes of state of this node's elections, by the input of the state machine.", "from", "to", "reason"),
		events:      f.counter("events_total", "Events of this node's elections.", "event"),
		vacancies:   f.histogram("vacancy_seconds", "How long the role had no leader before terms of this node, if known."),

		reconnects:        f.counter("session_reconnects_total", "Sessions with the database after the first one."),
		sessionFailures:   f.counter("session_failures_total", "Attempts to open a session with the database that failed."),
		heartbeats:        f.histogram("heartbeat_duration_seconds", "How long acknowledged heartbeats took."),
		heartbeatFailures: f.counter("heartbeat_failures_total", "Heartbeats that were not acknowledged, in sessions that continued."),

		waiting: f.gauge("callbacks_waiting", "Events that were not yet delivered to the program's callbacks."),
		oldest:  f.gauge("callback_oldest_seconds", "Age of the oldest event whose callbacks have not all returned, 0 if there is none."),
		delays:  f.histogram("callback_delay_seconds", "Time from an event until its callbacks returned."),
		panics:  f.counter("callback_panics_total", "Panics of the program's callbacks."),
	}
	c.families = f
	return c
}

// Describe implements [prometheus.Collector].
func (c *Elections) Describe(to chan<- *prometheus.Desc) { c.families.describe(to) }

// Collect implements [prometheus.Collector].
func (c *Elections) Collect(to chan<- prometheus.Metric) {
	stats := c.node.Stats()
	c.collectNode(to, stats)
	own, others := c.config.divide(stats.Elections)
	for _, election := range own {
		c.collectRole(to, election.Role, sumOf(election))
		c.held.send(to, election.LeadingFor.Seconds(), election.Role)
		c.term.send(to, float64(election.Term), election.Role)
		c.state.send(to, 1, election.Role, election.State.String())
	}
	if len(others) > 0 {
		c.collectRole(to, "", sumOf(others...))
	}
}

// collectRole sends the summable values.
func (c *Elections) collectRole(to chan<- prometheus.Metric, role string, s sum) {
	c.isLeader.send(to, float64(s.led), role)
	c.attempts.send(to, float64(s.attempts), role)
	c.failovers.send(to, float64(s.failovers), role)
	c.terms.send(to, float64(s.terms), role)
	c.losses.send(to, float64(s.losses), role)
}

func (c *Elections) collectNode(to chan<- prometheus.Metric, stats tenure.Stats) {
	led, byState := 0, map[tenure.State]int{}
	for _, election := range stats.Elections {
		byState[election.State]++
		if election.Term > 0 {
			led++
		}
	}
	for _, state := range states {
		c.roles.send(to, float64(byState[state]), state.String())
	}
	c.led.send(to, float64(led))
	c.connected.send(to, boolValue(stats.Connected))
	c.trust.send(to, stats.TrustRemaining.Seconds())
	timing := c.node.Timing()
	c.trustWindow.send(to, (timing.Lease - timing.Margin).Seconds())
	c.reconnects.send(to, float64(max(1, stats.Sessions)-1))
	c.sessionFailures.send(to, float64(stats.SessionFailures))
	c.heartbeats.sendDurations(to, stats.Heartbeats)
	c.heartbeatFailures.send(to, float64(stats.HeartbeatFailures))
	c.vacancies.sendDurations(to, stats.Vacancies)
	for transition, count := range stats.Transitions {
		c.transitions.send(to, float64(count), transition.From.String(), transition.To.String(), transition.Reason)
	}
	for _, kind := range eventKinds {
		c.events.send(to, float64(stats.Events[kind]), string(kind))
	}
	c.waiting.send(to, float64(stats.CallbacksWaiting))
	c.oldest.send(to, stats.OldestCallbackAge.Seconds())
	c.delays.sendDurations(to, stats.CallbackDelays)
	c.panics.send(to, float64(stats.CallbackPanics))
}

// Every state and every kind of event has a series from the start: its first occurrence is
// an increase from 0.
var (
	states = []tenure.State{
		tenure.Stopped, tenure.Follower, tenure.Acquiring, tenure.Leading, tenure.Reconnecting, tenure.Releasing,
	}
	eventKinds = []tenure.EventKind{
		tenure.EventStateChange, tenure.EventAcquired, tenure.EventReleased, tenure.EventLost,
		tenure.EventAcquireFailed, tenure.EventError, tenure.EventStopped,
	}
)
