// Package metrics has Prometheus collectors for nodes and clusters.
//
//	registry := prometheus.NewRegistry()
//	registry.MustRegister(
//		metrics.NewElections(node, metrics.Config{}),
//		metrics.NewCluster(member, metrics.Config{}),
//	)
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// There is a collector for each part of the library; use the ones you need. Nothing is
// registered automatically, and there is no global state. If a process has several nodes,
// distinguish them by a label:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"node": name}, registry)
//
// A scrape reads only values already known to the process. It queries no database, waits
// for no network and starts no work, so it can be as frequent as you like, and works while
// the database does not respond. Collectors are safe for concurrent use and need not be
// closed.
package metrics
