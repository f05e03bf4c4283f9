// Package alerts watches the metrics of all nodes and tells people of what is
// wrong.
//
// An [Engine] campaigns for the role metrics-aggregator. Its leader reads the
// samples of all nodes, evaluates every [Rule] by Prometheus's own engine, and
// keeps in the database which alerts are pending or firing. The rules are in the
// database too, as the configuration that was read last has them, so that
// another leader evaluates the same.
//
// Each change of an alert is one transaction that commits only if the term still
// stands, and which also writes what is to be told of it to whom. Sending is
// separate: whoever leads sends what is not sent yet, until it is acknowledged
// or a day has passed. So a change of leader loses no notification; and it
// repeats one only if the leader died between the acknowledgment and its note
// of it.
//
// All times are those of the database's clock.
package alerts
