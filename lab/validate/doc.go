// Package validate checks the files in deploy/: the unit with systemd's own checker,
// the manifests against the types of Kubernetes' API, the container's recipe against
// the repository, and the command lines in all of them against the program.
package validate
