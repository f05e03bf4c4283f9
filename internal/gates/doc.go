// Command gates runs the checks of the project: the gate of a commit, and the
// slices of everything else.
//
//	gates check            the gate of a commit
//	gates test             its quick tests alone
//	gates deep [SLICE...]  all slices, or the named ones
//	gates turn             the slice whose turn it is at this commit
//	gates list [json]      what there is, and what each part proves
//	gates compare          go test -list, beside the list of this command
//	gates table            rewrite the table of CONTRIBUTING.md
//
// With -record, the times of what ran go into that table. With -args='-count=1', go
// test has further flags.
//
// A gate or a slice is a list of steps (files check.go and deep.go). A step either
// tests packages or runs a command. Tests run with go test -json: the
// command counts passed, failed and skipped tests, and a skipped test fails the
// run unless file skips.go names it with a reason.
//
// A test of this package compares all tests of all modules with the steps, so
// that no test is left out by accident.
package main
