// Package sandbox holds what private database servers have in common, whatever
// their make: a temporary directory with everything they write, an account to
// run them as, ports for them, and the promise that nothing of them is left when
// the process that started them ends, however that ends.
package sandbox
