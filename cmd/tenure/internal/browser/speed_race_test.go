//go:build race

package browser

// patienceFactor is how much longer things may take than promised: the server
// runs under the race detector here, and the tests of other packages beside it.
const patienceFactor = 10
