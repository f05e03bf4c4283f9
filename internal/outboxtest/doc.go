// Package outboxtest holds publishers to what outboxes promise: it runs leaders
// in processes of their own, kills and stops them in the middle of batches, and
// checks what has arrived.
//
// A test program that uses it has
//
//	func TestMain(m *testing.M) { outboxtest.Main(m, open) }
//
// and a test that calls [Run].
package outboxtest
