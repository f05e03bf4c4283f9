// Package notify tells the service manager how a program fares, as systemd's
// sd_notify does, without its library.
//
// A manager that wants to be told names a datagram socket in NOTIFY_SOCKET, and in
// WATCHDOG_USEC how often it wants a sign of life. [Open] takes both, [Start] keeps
// the manager informed. Where no manager asks, all of this does nothing.
package notify
