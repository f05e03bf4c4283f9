// Package httpguard has the common checks of this project's HTTP handlers before they
// serve a request: the host name in it, the address of the client, and the number of wrong
// credentials from this address.
package httpguard
