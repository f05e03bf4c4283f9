// Package managed tests elections on servers that a provider manages: users
// without superuser, settings that a service imposes, TLS, passwords that rotate,
// restarts for maintenance and full disks. It runs the known settings of managed
// services on local servers. The results are the tables of docs/howto/managed-servers.md.
package managed
