// Package notifiers notifies people and other programs of alerts: Slack by an incoming
// webhook, PagerDuty by its Events API v2, any program by a signed webhook, people by
// e-mail, and Prometheus's Alertmanager by its API v2.
//
// [Open] makes the notifiers of a configuration, and [Set.Find] finds one by an address:
// "pagerduty", or "slack:#ops" for a channel of slack. [Notifier.Send] makes one attempt;
// its caller keeps unsent messages, and tries again.
//
// Secrets in files are read at every attempt: they can be changed without a new start. No
// error contains a secret: of a URL it shows the host alone.
package notifiers
