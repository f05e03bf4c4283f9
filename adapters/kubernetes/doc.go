// Package kubernetes elects on PostgreSQL for client-go's leaderelection, and so for the
// managers of controller-runtime, and labels the leader's pod.
//
// A [Lock] takes the place of a Lease: the record describes a term of the Tenure role.
// The elector of client-go polls it, and a lock cannot interrupt the elector. So start
// the elector, or the manager, with the context of [Lock.Context], which ends with the
// term:
//
//	lock, err := tenurekubernetes.New(node, tenure.NamedRole("controller"), tenurekubernetes.Config{})
//	…
//	leaderelection.RunOrDie(lock.Context(ctx), leaderelection.LeaderElectionConfig{Lock: lock, …})
//
// Without such a context the lock acquires no term. Each context is for one run of an
// elector and one term: after its end, take the next context and start again.
//
// A [Labeler] needs no elector: it keeps a label on the pod of an election's leader, for
// a Service to select it.
package kubernetes
