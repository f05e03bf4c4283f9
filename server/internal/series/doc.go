// Package series keeps the last hours of every node's metrics in memory, for Prometheus's
// query engine.
//
// A [Store] takes the nodes' samples from their database, and answers PromQL over them.
// Every series has the labels "node" and "node_name" of the measuring node beside its
// own. Older samples are kept more coarsely: each sample for an hour, one a minute for
// six hours and one each five minutes for a day.
//
// A query may call a metric tenure_…, forge_… or by the nodes' configured prefix: it is
// the same series.
//
// Memory is bounded by [Config.MaxSeries]: ended series make room for new ones. A series
// takes about 7 kB while its value rests and at most about 17 kB: 10,000 series take 70
// to 170 MB.
package series
