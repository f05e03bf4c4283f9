package kubernetes

import (
	"context"
	"errors"
	"math"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/exactly-one/tenure"
)

// identity is how the locks of all nodes name a node.
func identity(name string, id uuid.UUID) string { return name + "_" + id.String() }

// record returns the record of the present leader.
func (l *Lock) record(ctx context.Context) (resourcelock.LeaderElectionRecord, error) {
	if own, ok := l.ownRecord(ctx); ok {
		return own, nil
	}
	leader, err := l.election.Leader(ctx)
	if err != nil && !errors.Is(err, tenure.ErrNoLeader) {
		return resourcelock.LeaderElectionRecord{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastTerm = max(l.lastTerm, leader.Term)
	record := resourcelock.LeaderElectionRecord{LeaderTransitions: int(l.lastTerm)}
	if !leader.Valid() || leader.NodeID == l.node.ID() { // a term of this node that has ended
		return record, nil
	}
	lease := l.node.Timing().Lease
	record.HolderIdentity = identity(leader.NodeName, leader.NodeID)
	record.LeaseDurationSeconds = int(math.Ceil(lease.Seconds()))
	record.AcquireTime = metav1.NewTime(leader.AcquiredAt)
	record.RenewTime = metav1.NewTime(leader.LeaseUntil.Add(-lease))
	return record, nil
}

// ownRecord returns the record of the term held by the elector of this node, if the term
// is valid. A later run does not see the term of an earlier one.
func (l *Lock) ownRecord(ctx context.Context) (resourcelock.LeaderElectionRecord, bool) {
	r, _ := l.runOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == nil || r != nil && r != l.holder || !l.holder.term.Valid() {
		return resourcelock.LeaderElectionRecord{}, false
	}
	return l.holder.record, true
}
