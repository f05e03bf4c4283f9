// Package kubernetes elects on PostgreSQL for client-go's leaderelection, and so for
// the managers of controller-runtime, and labels the leader's pod.
//
// A [Lock] takes the place of a Lease: a term of the Tenure role is what the record
// describes. The elector of client-go polls it and cannot be interrupted by a lock,
// so start the elector, or the manager, with the context of [Lock.Context], which
// ends with the term:
//
//	lock, err := tenurekubernetes.New(node, tenure.NamedRole("controller"), tenurekubernetes.Config{})
//	…
//	leaderelection.RunOrDie(lock.Context(ctx), leaderelection.LeaderElectionConfig{Lock: lock, …})
//
// Without such a context the lock acquires no term. Each context is for one run of an
// elector and one term: after its end, take the next context and start again.
//
// A [Labeler] needs no elector: it keeps a label on the pod of an election's leader, so
// that a Service can select it.
package kubernetes
