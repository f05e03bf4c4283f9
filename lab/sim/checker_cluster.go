package sim

// The invariants of clusters, as Violation numbers them.
const (
	registryTrue = 9  // every member knows of every node whether it is alive and active
	serversLead  = 10 // only an active node begins a term, and a drained one leads nothing
	modeled      = 13 // steps are those of the models in lab/model
	fairShares   = 11 // members that share roles lead all of them, fairly, and move as few as possible
)

// begins checks invariant 10 where a term begins, by the registry's status and not the
// node's own: a node updates the registry before it campaigns for a role.
func (c *checker) begins(role string, b *backend) {
	row := b.row()
	if row == nil || b.client.undescribed || row.description.Status.AcceptsWork() {
		return
	}
	c.violate(serversLead, "%s begins a term of %s while its status is %q", b.client.process, role, row.description.Status)
}

// drained checks invariant 10 where terms are trusted.
func (c *checker) drained(role string, claims []claim) {
	for _, claim := range claims {
		b := c.world.server.backendOf(claim.process.machine)
		if b == nil || b.client.undescribed {
			continue
		}
		if row := b.row(); row != nil && row.description.Drained {
			c.violate(serversLead, "%s leads %s, term %d, and has reported that it is drained", claim.process, role, claim.term)
		}
	}
}
