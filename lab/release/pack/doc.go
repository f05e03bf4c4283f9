// Package pack makes the files of a release from programs that are already built:
// archives, Debian packages, bills of materials, notes and checksums. The same
// input gives the same bytes.
package pack
