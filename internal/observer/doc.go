// Package observer has no code of the product: its tests cause known things in clusters of
// real processes on a real PostgreSQL, and compare everything that is shown about them with
// what happened.
//
// What happened is known from outside: the observer's own times around a signal or a request,
// the events that the processes print, and pg_stat_activity. What is shown is read from the
// commands, the HTTP API, the metrics, the messages of alerts, and the data of the dashboard.
// Each comparison is a case: a scenario, where it is read, what is shown, what is true, and
// how far both may be apart. The cases are printed as a table.
package observer
