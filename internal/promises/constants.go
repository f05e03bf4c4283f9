package promises

import "slices"

// Constants are all entries of the list.
var Constants = slices.Concat(postgresConstants, engineConstants, clusterConstants, eventConstants, commandConstants, serviceConstants, alertConstants)
