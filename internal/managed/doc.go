// Package managed tests elections on servers that belong to somebody else: users
// without superuser, settings that a service imposes, TLS, passwords that rotate,
// restarts for maintenance and full disks. It runs the known settings of managed
// services on local servers. The results are the table of docs/howto/managed-servers.md.
package managed
