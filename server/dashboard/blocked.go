package dashboard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// maxBlockedRead bounds the vacant roles whose blockers are read: the read needs the
// whole lock table of the server.
const maxBlockedRead = 20

// readBlocked reads which transactions keep the terms of vacant roles from beginning.
func (w *watcher) readBlocked(ctx context.Context) {
	roles := w.snapshot.vacantRoles(maxBlockedRead)
	if len(roles) == 0 {
		w.snapshot.setBlocked(nil)
		return
	}
	if time.Since(w.blockedAt) < nodesInterval {
		return
	}
	w.blockedAt = time.Now()
	statuses, err := w.config.Backend.Holders(ctx, roles...)
	if err != nil {
		w.log.Debug("the dashboard cannot read what roles wait for", "error", err)
		return
	}
	w.snapshot.setBlocked(blockedOf(statuses))
}

func blockedOf(statuses []history.RoleStatus) []blockedRecord {
	var all []blockedRecord
	for _, s := range statuses {
		for _, b := range s.Blockers {
			all = append(all, blockedRecord{s.Role, b.String(), when(b.Since), b.Advice})
		}
	}
	return all
}

// vacantRoles returns roles without a leader, up to a limit. A name that no node can have
// is left out.
func (p *snapshot) vacantRoles(limit int) (roles []tenure.Role) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, name := range p.names {
		if role := tenure.NamedRole(name); p.roles[name].state == vacant && role.Validate() == nil && len(roles) < limit {
			roles = append(roles, role)
		}
	}
	return roles
}

func (p *snapshot) setBlocked(blocked []blockedRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = blocked
}

// blockedNow are the blockers of roles that are still vacant.
func (p *snapshot) blockedNow() []blockedRecord {
	return slices.DeleteFunc(append([]blockedRecord{}, p.blocked...), func(b blockedRecord) bool {
		r := p.roles[b.Role]
		return r == nil || r.state != vacant
	})
}

// blockedText is a sentence on the first role that waits, after a space, or nothing.
func blockedText(n nowRecord) string {
	if len(n.Blocked) == 0 {
		return ""
	}
	var by []string
	for _, b := range n.Blocked {
		if b.Role == n.Blocked[0].Role {
			by = append(by, b.By)
		}
	}
	return " " + quoted(n.Blocked[0].Role) + " waits for " + quotedUpTo(strings.Join(by, ", "), mostErrorRunes) + "."
}
