// Command mutants breaks the code on purpose, one line at a time, and reports
// which breaks the tests notice. A break that no test notices is a promise that
// no test keeps.
//
//	go run ./lab/mutants [-j 2] [-list] [-part K/N] [-v] [NAME...]
//
// Each entry of the list names four things: the line to break, the invariant or
// the promise that the break violates, the tests that must fail because of it,
// and a text of these tests that says so. The source tree is never changed: the
// compiler reads the broken file through an overlay. Tests that are named must
// pass on the unbroken code first.
//
// A mutant is caught if a named test fails and says the text of its entry. Any
// other failure, such as a panic, says something else: it proves no promise. A
// mutant has survived if all tests pass. It hangs if a test runs into its time
// limit, which names no promise either. It is stale if the line to break is not
// found exactly once. The exit code is 0 only if every selected mutant is caught.
package main
