// Package tracing traces elections with OpenTelemetry.
//
//	tracing.Trace(election, otel.GetTracerProvider())
//	err := election.Start(ctx)
//
// Each term makes three spans:
//
//	tenure.acquire  from the attempt that took the role until the term began;
//	                exported at once
//	tenure.term     from the begin of the term until its role was free, or lost;
//	                exported then, with a link to tenure.acquire
//	tenure.release  from when the term was asked to end until its role was free;
//	                a child of tenure.term
//
// A span of a term that was lost has the status Error, with the reason. Attempts
// of a standby while another leads make no spans. All times are those of the
// node's wall clock.
//
// It is a module of its own, so that nobody else needs OpenTelemetry's.
package tracing
