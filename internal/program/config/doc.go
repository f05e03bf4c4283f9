// Package config reads tenure.toml and joins it with the environment and the flags of a
// command.
//
// [Load] and [Parse] are strict: every key is in a table of keys (keys.go), every value
// has the key's type and lies within its bounds, and all errors are reported together,
// each with its line. [Apply] completes the flags of a command line. The order of
// precedence is: flag, variable of the environment, file, default. [Show] prints the
// outcome with the origin of each value and without secrets. [Diff] lists the changes for
// a reload.
package config
