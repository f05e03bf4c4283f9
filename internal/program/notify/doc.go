// Package notify reports a program's state to the service manager, as systemd's sd_notify
// does, without its library.
//
// A manager with a use for these reports names a datagram socket in NOTIFY_SOCKET, and in
// WATCHDOG_USEC how often it wants a sign of life. [Open] takes both, [Start] keeps the
// manager informed. Where no manager asks, all of this does nothing.
package notify
