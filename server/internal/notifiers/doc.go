// Package notifiers notifies people and other programs of alerts: Slack by an
// incoming webhook, PagerDuty by its Events API v2, any program by a signed
// webhook, people by e-mail, and Prometheus's Alertmanager by its API v2.
//
// [Open] makes notifiers of what a file configures, and [Set.Find] the one that
// an address names: "pagerduty", or "slack:#ops" for a channel of slack.
// [Notifier.Send] makes one attempt; its caller keeps what is to be sent, and
// tries again.
//
// Secrets that are in files are read at every attempt, so that they can be
// changed without a new start. No error contains a secret: of a URL it shows the
// host alone.
package notifiers
