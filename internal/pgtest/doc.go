// Package pgtest gives tests real PostgreSQL servers: one shared by all tests of
// a package, with a schema or a database for each, and separate servers for
// tests that stop, promote or break them.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// A machine without PostgreSQL fails these tests; none is ever skipped.
package pgtest
