// Command release prepares releases of all modules of this repository. It is a
// separate module so that no other one requires what it imports.
//
//	release check    install the program and build a user's program from the files of this folder
//	release tidy     check that go.mod and go.sum of every module are tidy; -write makes them so
//	release tag      make the files to publish, in dist; with -commit also set the version of all modules and tag it
//
// It exits with 2 if the command line cannot be followed, and with 1 if it fails.
package main
