// Package metrics has Prometheus collectors for nodes and clusters.
//
//	registry := prometheus.NewRegistry()
//	registry.MustRegister(
//		metrics.NewElections(node, metrics.Config{}),
//		metrics.NewCluster(member, metrics.Config{}),
//	)
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// There is a collector for each part of the library; use those of the parts that
// you use. Nothing is registered by itself, and there is no global state. For
// several nodes in one process, tell them apart by a label:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"node": name}, registry)
//
// A scrape reads what the process knows already. It asks no database, waits for
// no network, and starts nothing, so it may come as often as you like, and
// answers while the database does not. Collectors are safe for concurrent use,
// and need no closing.
package metrics
