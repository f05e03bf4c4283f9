// Package tracing traces elections with OpenTelemetry.
//
//	tracing.Trace(election, otel.GetTracerProvider())
//	err := election.Start(ctx)
//
// Each term makes three spans:
//
//	tenure.acquire  from the attempt that acquired the role until the term began;
//	                exported immediately
//	tenure.term     from the start of the term until its role was released or lost;
//	                exported then, with a link to tenure.acquire
//	tenure.release  from when the term began to stop until its role was released;
//	                a child of tenure.term
//
// A span of a lost term has the status Error, with the reason. Attempts of a standby
// while another node leads have no spans. All times are by the node's wall clock.
//
// It is a separate module: other programs do not depend on OpenTelemetry.
package tracing
