// Package gocron shares the jobs of gocron v2 among several nodes.
//
// With an [Elector], all jobs run on the leader of one role. With a [Locker], each job
// runs on one node at a time: the job has a separate role, and each run is a term.
//
// gocron asks at the start of a job and cannot interrupt it. Wrap the job with
// [Elector.Task] or [Locker.Task]: its context then ends with the term, the role is not
// released before the job has returned, and the term can fence transactions.
package gocron

import (
	"context"

	"github.com/exactly-one/tenure"
)

// Job is a job of a term. Its context ends with the term, or when gocron cancels the
// job; context.Cause returns the reason.
type Job func(ctx context.Context, term *tenure.Term) error

// run runs a job within a guard's term.
func run(ctx context.Context, guard *tenure.Guard, job Job) error {
	defer guard.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(guard.Context(), func() { cancel(context.Cause(guard.Context())) })
	defer stop()
	return job(ctx, guard.Term())
}
