// Command release prepares releases of all modules of this repository. It is a
// separate module so that no other one requires golang.org/x/mod.
//
//	release check    install the program and build a user's program from the files of this folder
//	release tidy     check that go.mod and go.sum of every module are tidy; -write makes them so
//	release tag      set the version of all modules and tag it; -commit does it
package main
