package metrics

import "slices"

// Definitions returns every metric of this package, in the order of the
// documentation. Dashboards and rules are generated from them.
func Definitions() []Definition {
	return slices.Concat(
		NewElections(nil, Config{}).families.made,
		NewBackend(nil, Config{}).families.made,
		NewCluster(nil, Config{}).clusterNames.made,
		NewCluster(nil, Config{}).nodeNames.made,
		NewWork(nil, nil, Config{}, WorkConfig{}).definitions(),
	)
}
