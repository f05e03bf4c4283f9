// Package outboxtest checks that publishers keep the promises of outboxes: it runs
// leaders in separate processes, kills and stops them in the middle of batches, and
// checks what has arrived.
//
// A test program that uses it has
//
//	func TestMain(m *testing.M) { outboxtest.Main(m, open) }
//
// and a test that calls [Run].
package outboxtest
