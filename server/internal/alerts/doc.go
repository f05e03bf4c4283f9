// Package alerts watches the metrics of all nodes and notifies people of faults.
//
// An [Engine] campaigns for the role metrics-aggregator. Its leader reads the samples of
// all nodes, evaluates every [Rule] by Prometheus's own engine, and keeps the pending and
// firing alerts in the database. The rules are in the database too, from the
// configuration read last, so another leader evaluates the same.
//
// Each change of an alert is one transaction. It commits only if the term is still valid.
// It also writes the notifications to send, and their receivers. Sending is separate: the
// current leader sends each notification until it is acknowledged or a day has passed. So
// a change of leader loses no notification. It repeats one only if the old leader died
// after the acknowledgment and before recording it.
//
// All times are by the database's clock.
package alerts
