// Package slots elects several leaders of one role: at most [Config].Count at a
// time, each with its own term and fencing token, and at most [Config].PerNode on one
// node.
//
//	set, err := slots.New(node, "worker", slots.Config{Count: 3})
//	err = set.Run(ctx, func(ctx context.Context, slot int, term *tenure.Term) error { … })
//
// The slots are ordinary roles with the names worker/1, worker/2 and worker/3.
// Fencing, status, history, step-down, hand-over and drain work for a slot as for any
// role, on every backend. Every node should use the same Count: it is not stored.
//
// While a node has as many slots as permitted, it tries no other one. When a slot becomes
// vacant, a node with room takes it. Each node with room tries the slots one after
// another, so a set costs more statements than one role: use tens of slots, not hundreds.
package slots
