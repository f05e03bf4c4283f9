// Package alerts watches the metrics of all nodes and notifies people of faults.
//
// An [Engine] campaigns for the role metrics-aggregator. Its leader reads the
// samples of all nodes, evaluates every [Rule] by Prometheus's own engine, and
// keeps in the database which alerts are pending or firing. The rules are in the
// database too, as the configuration that was read last has them, so that
// another leader evaluates the same.
//
// Each change of an alert is one transaction, which commits only if the term is
// still valid. The transaction also writes which notifications must be sent, and to
// whom. Sending is separate: the current leader sends each notification that was
// not sent yet, until it is acknowledged or a day has passed. So a change of leader
// loses no notification. It repeats one only if the old leader died after the
// acknowledgment and before recording it.
//
// All times are those of the database's clock.
package alerts
