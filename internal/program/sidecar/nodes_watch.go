package sidecar

import (
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/record"
)

// followNodes sends the clients the nodes as they join, change and leave, until the
// handler is closed.
func (h *Handler) followNodes(joined *cluster.Member) {
	filter := cluster.Filter{Statuses: []tenure.NodeStatus{cluster.Joining, cluster.Active, cluster.Draining}}
	for change := range joined.Watch(h.ctx, filter) {
		if change.Kind == cluster.Snapshot {
			continue
		}
		kind := kindOf[change.Kind]
		h.publish(h.nodes, kind, record.NodeChange{Time: record.Time(time.Now()), Change: kind, Node: profileOf(change.Node)})
	}
}

var kindOf = map[cluster.ChangeKind]string{
	cluster.Joined: kindJoined, cluster.Updated: kindUpdated, cluster.Left: kindLeft,
}

// profileOf returns a node's own description.
func profileOf(node cluster.NodeInfo) record.Profile {
	description := tenure.Description{
		Status: node.Status, StatusBy: node.StatusBy, Drained: node.Drained, Address: node.Address, HTTPPort: node.HTTPPort, GRPCPort: node.GRPCPort,
		Capabilities: node.Capabilities, Labels: node.Labels, Version: node.Version, Spreads: node.Spreads,
	}
	for _, role := range node.Roles {
		description.Roles = append(description.Roles, string(role))
	}
	info := tenure.NodeInfo{ID: node.ID, Name: node.Name, Host: node.Hostname}
	return record.NewProfile(info, description, node.StartedAt)
}
