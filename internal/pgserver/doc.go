// Package pgserver runs private PostgreSQL servers from the binaries that a
// machine has: for tests, through package pgtest, and for the demonstration of
// the command line.
//
// Servers live in a [Sandbox], a temporary directory with everything they
// write. They listen on the loopback interface and on a Unix socket inside the
// sandbox, trust everybody who can reach those, and end with the process that
// started them, however that ends.
//
// PostgreSQL refuses to run as root. A process that is root runs the servers
// as another account of the machine: postgres if there is one, else the account nobody.
package pgserver
