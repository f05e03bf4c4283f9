//go:build !race

package browser

// patienceFactor is how much longer things may take than promised: the tests of
// other packages run beside these.
const patienceFactor = 4
