// Package httpguard has the checks that every HTTP handler of this project makes
// before it serves a request: the host name in it, the address of the client, and
// how many wrong credentials came from that address.
package httpguard
