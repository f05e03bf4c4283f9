// Package interruption tests that the make targets that start servers remove everything
// when they are interrupted: processes, network namespaces, mounts and temporary files.
package interruption
