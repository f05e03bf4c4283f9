package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/steps"
)

// process performs a batch of jobs: first the releases of roles, in the order of arrival,
// and then all attempts to acquire roles, in one call of the session.
func (h *host) process(jobs []*job) error {
	var acquiring []*job
	for i, j := range jobs {
		var err error
		switch {
		case j.gone != "":
			err = h.endClient(j.client, j.gone)
		case j.call.Op == wire.OpClose:
			if err = h.endClient(j.client, history.EndShutdown); err == nil {
				j.reply(wire.Answer{})
			}
		case j.call.Op == wire.OpRelease:
			err = h.release(j)
		default:
			acquiring = append(acquiring, j)
		}
		if err != nil { // the session is lost
			h.replyLost(append(acquiring, jobs[i:]...), err)
			return err
		}
	}
	if err := h.acquire(acquiring); err != nil {
		h.replyLost(acquiring, err)
		return err
	}
	return nil
}

// replyLost answers jobs after the loss of their session.
func (h *host) replyLost(jobs []*job, err error) {
	for _, j := range jobs {
		select {
		case j.answer <- wire.Answer{Err: wire.NewError(fmt.Errorf("%w: %w", tenure.ErrSessionLost, err))}:
		default: // it has none, or it was answered
		}
	}
}

// endClient releases all roles of a node and forgets the node.
func (h *host) endClient(c *client, reason tenure.EndReason) error {
	if reason == history.EndLeaseExpired {
		h.cfg.Logger.Warn("a node was silent for longer than its lease", "name", c.node.Name, "id", c.node.ID)
	}
	h.mu.Lock()
	c.gone = true
	var releases []tenure.ReleaseRequest
	for _, held := range h.rolesLocked(c) {
		releases = append(releases, tenure.ReleaseRequest{Role: held.role, Term: held.term, Reason: reason})
	}
	h.mu.Unlock()
	h.step(steps.Step{Kind: steps.AgentReleases, Session: c.incarnation, Forced: reason == history.EndLeaseExpired})
	if len(releases) > 0 {
		if err := h.inner.Release(releases); err != nil {
			return lostBy("release the roles of a node", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients[c.node.ID] == c {
		delete(h.clients, c.node.ID)
		maps.DeleteFunc(h.reservations, func(_ string, r reservation) bool { return r.node == c.node.ID })
	}
	h.releasedLocked(c, releases)
	return nil
}

// releasedLocked forgets released roles and wakes the other nodes.
func (h *host) releasedLocked(c *client, releases []tenure.ReleaseRequest) {
	for _, r := range releases {
		delete(h.held, r.Role.Name())
	}
	c.requests = slices.DeleteFunc(c.requests, func(r tenure.Request) bool { return h.held[r.Role] == nil })
	if len(releases) > 0 {
		h.changedLocked(c)
	}
}

// lostBy returns an error after which the session may hold locks it should not hold.
func lostBy(what string, err error) error {
	return fmt.Errorf("%w: %s: %w", tenure.ErrSessionLost, what, err)
}

// release releases roles of a node. A reservation for a node of this host is a reservation
// for the agent in the database.
func (h *host) release(j *job) error {
	releases, kept, err := h.decodeReleases(j)
	if err != nil {
		j.reply(wire.Answer{Err: wire.NewError(err)})
		return nil
	}
	if err := h.inner.Release(releases); err != nil {
		return lostBy("release", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range releases {
		delete(h.reservations, r.Role.Name())
	}
	for role, r := range kept {
		h.reservations[role] = r
	}
	h.releasedLocked(j.client, releases)
	j.reply(wire.Answer{})
	return nil
}

func (h *host) decodeReleases(j *job) (releases []tenure.ReleaseRequest, kept map[string]reservation, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept = map[string]reservation{}
	named := make(map[string]struct{}, len(j.call.Releases))
	now := h.now()
	for _, r := range j.call.Releases {
		role, err := r.Role.Decode()
		if err != nil {
			return nil, nil, err
		}
		if _, twice := named[role.Name()]; twice { // releasing a lock twice would end the session of all nodes
			return nil, nil, fmt.Errorf("%w: the node releases %s twice in one call", tenure.ErrLock, role)
		}
		named[role.Name()] = struct{}{}
		held := h.held[role.Name()]
		if held == nil || held.client != j.client || held.term != r.Term && r.Term != 0 {
			return nil, nil, fmt.Errorf("%w: the node does not hold term %d of %s", tenure.ErrLock, r.Term, role)
		}
		target := r.Target
		if local := h.clients[target]; local != nil && !local.gone && target != uuid.Nil {
			kept[role.Name()] = reservation{node: target, until: now.Add(r.Reservation)}
			target = h.node
		}
		releases = append(releases, tenure.ReleaseRequest{
			Role: role, Term: held.term, Reason: r.Reason, By: r.By, Target: target, Reservation: r.Reservation,
			Cause: r.Cause, NextIn: r.NextIn,
		})
	}
	return releases, kept, nil
}

// attempt is the session's attempt to acquire one role for a node.
type attempt struct {
	request tenure.AcquireRequest
	client  *client
	place   *wire.Result
}

// acquire answers jobs to acquire roles. Roles of other nodes of the host are decided
// here; for each other role the session makes one attempt, for the first candidate.
func (h *host) acquire(jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	answers := make([]wire.Answer, len(jobs))
	var attempts []attempt
	first := map[string]int{}              // the attempt of each role
	followers := map[*wire.Result]string{} // results of other nodes that want the same roles
	h.mu.Lock()
	now := h.now()
	for i, j := range jobs {
		if j.client.gone {
			answers[i].Err = wire.NewError(fmt.Errorf("%w: the lease has expired", tenure.ErrSessionLost))
			continue
		}
		answers[i].Results = make([]wire.Result, len(j.call.Acquire))
		for k, a := range j.call.Acquire {
			place := &answers[i].Results[k]
			role, err := a.Role.Decode()
			if err != nil {
				*place = failed(err)
				continue
			}
			if h.decideLocked(j.client, role, a.Recovering, now, place) {
				continue
			}
			next := attempt{tenure.AcquireRequest{Role: role, Recovering: a.Recovering, YieldFor: a.YieldFor, YieldTerm: a.YieldTerm, NodeName: j.client.node.Name}, j.client, place}
			at, taken := first[role.Name()]
			switch {
			case !taken:
				first[role.Name()] = len(attempts)
				attempts = append(attempts, next)
			case attempts[at].request.YieldFor > 0 && a.YieldFor == 0: // it leaves the role to this node
				followers[attempts[at].place] = role.Name()
				attempts[at] = next
			default:
				followers[place] = role.Name()
			}
		}
	}
	h.mu.Unlock()
	err := h.try(attempts)
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	for place, role := range followers {
		if *place = *attempts[first[role]].place; place.Outcome != tenure.OutcomeFailed {
			*place = wire.Result{Outcome: tenure.OutcomeHeld, RetryIn: retryOf(*place)}
		}
	}
	replyAll(jobs, answers, attempts, err)
	return nil
}

// replyAll replies to jobs. An error of the attempts belongs to the call and not to its
// roles: pending roles are still pending, and the nodes must know.
func replyAll(jobs []*job, answers []wire.Answer, attempts []attempt, err error) {
	for i, j := range jobs {
		if err != nil && slices.ContainsFunc(attempts, func(a attempt) bool { return a.client == j.client }) {
			answers[i] = wire.Answer{Err: wire.NewError(err)}
		}
		j.reply(answers[i])
	}
}

// retryOf returns the hint for other nodes of the host, in case of a reservation.
func retryOf(r wire.Result) time.Duration {
	if r.Outcome == tenure.OutcomeHeld {
		return r.RetryIn
	}
	return 0
}

func failed(err error) wire.Result {
	return wire.Result{Outcome: tenure.OutcomeFailed, Err: wire.NewError(err)}
}

// decideLocked decides an attempt without the session, if possible.
func (h *host) decideLocked(c *client, role tenure.Role, recovering bool, now wire.Moment, place *wire.Result) bool {
	name := role.Name()
	if held := h.held[name]; held != nil {
		switch {
		case held.role != role:
			*place = failed(fmt.Errorf("%w: another node of this host uses another key for %s", tenure.ErrKeyMismatch, role))
		case held.client != c:
			*place = wire.Result{Outcome: tenure.OutcomeHeld}
			if recovering {
				place.Holder = held.client.node.ID
			}
		case held.term != 0: // Invariant 5: a role that is held is not locked again
			*place = failed(fmt.Errorf("%w: the node already holds %s", tenure.ErrLock, role))
		default:
			return false // pending: the session continues it
		}
		return true
	}
	if r, reserved := h.reservations[name]; reserved {
		switch {
		case now >= r.until:
			delete(h.reservations, name)
		case r.node != c.node.ID:
			*place = wire.Result{Outcome: tenure.OutcomeHeld, RetryIn: r.until.Sub(now)}
			return true
		}
	}
	if m, known := h.misses[name]; known && !recovering && m.role == role && now < m.until {
		*place = wire.Result{Outcome: tenure.OutcomeHeld}
		return true
	}
	return false
}

// miss is a role found to be held by another host. Until a notification, or until it
// expires, the nodes of this host need not ask again.
type miss struct {
	role  tenure.Role
	until wire.Moment
}

// After a notification the locks of a dead session are freed one by one, so
// misses count for shortMiss only while the nodes retry quickly.
const (
	quickPeriod = 500 * time.Millisecond
	shortMiss   = time.Millisecond
)

func (h *host) missUntil(now wire.Moment) wire.Moment {
	if now.Sub(h.changedAt) < quickPeriod {
		return now.Add(shortMiss)
	}
	return now.Add(h.cfg.Timing.CheckInterval / 2)
}

// try makes attempts and fills in their results. If the session continues after an error,
// the error fails the attempts; pending roles are still pending.
func (h *host) try(attempts []attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	requests := make([]tenure.AcquireRequest, len(attempts))
	for i, a := range attempts {
		requests[i] = a.request
	}
	results, err := h.inner.TryAcquire(requests)
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, a := range attempts {
		if err != nil {
			*a.place = failed(err)
			continue
		}
		h.applyLocked(a, results[i])
	}
	return err
}

// applyLocked records the result of one attempt.
func (h *host) applyLocked(a attempt, result tenure.AcquireResult) {
	name := a.request.Role.Name()
	switch result.Outcome {
	case tenure.OutcomeGranted, tenure.OutcomePending:
		h.held[name] = &holding{role: a.request.Role, client: a.client, term: result.Term}
		h.beatSoon = h.beatSoon || result.NotDurable
		if result.Outcome == tenure.OutcomeGranted {
			delete(h.reservations, name) // it applies to one term
		}
	default:
		delete(h.held, name) // if it was pending
		if result.Outcome == tenure.OutcomeHeld && result.RetryIn == 0 {
			now := h.now()
			h.misses[name] = miss{a.request.Role, h.missUntil(now)}
		}
		if result.Holder == h.node { // an earlier session of this agent, for any of its nodes
			result.Holder = uuid.Nil
		}
	}
	*a.place = wire.NewResult(result)
}
