// Package config reads tenure.toml and joins it with the environment and the
// flags of a command.
//
// [Load] and [Parse] are strict: every key is one of a table of keys (keys.go),
// every value has the key's type and lies within its bounds, and all errors are
// reported together, each with its line. [Apply] gives the flags of a command the
// values that its command line leaves out: a flag outranks a variable of the
// environment, that the file, and that the default. [Show] prints the outcome with
// the origin of each value and without secrets, and [Diff] says what a reload can
// change.
package config
