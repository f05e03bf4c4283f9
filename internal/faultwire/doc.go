// Package faultwire is a network whose faults a test controls: a proxy between
// clients and a PostgreSQL server, for tests on the real wire.
//
// Each connection has two directions. Either can be stalled, as by a network that
// loses every packet; delayed; made to drop everything after a number of bytes; or
// ended with a FIN or an RST toward one side only. Faults can be set for one
// connection or, on the [Proxy], for all that exist and all to come. Requests to
// cancel a statement come on separate connections and can be lost
// ([Proxy.LoseCancelRequests]).
//
// The proxy follows the protocol far enough to know whose connection it is
// looking at, and to slip a statement into a session ([Conn.Inject]). A
// connection that turns to TLS is forwarded without being understood.
package faultwire
