// Package rulefiles tests the files in deploy/prometheus and deploy/grafana with
// Prometheus's own parser and engine. It is here because the program needs both.
package rulefiles
