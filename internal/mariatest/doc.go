// Package mariatest gives tests real MariaDB servers: one shared by all tests of
// a package, with a database for each, and separate servers for tests that
// stop, pause or break them. The tests bring their own driver.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { mariatest.Main(m) }
//
// and one that uses package pgtest too
//
//	func TestMain(m *testing.M) { pgtest.Main(mariatest.WithServers(m)) }
//
// The servers listen on the loopback interface, let root in without a password,
// and end with the process that started them, however that ends. They read no
// configuration of the machine and use no service of it.
//
// A machine without MariaDB fails these tests where the environment variable CI
// is set; elsewhere it skips them and says so when the package's tests end.
package mariatest
