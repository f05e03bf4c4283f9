// Package dialects has no code: its tests check the promises of package lease on real
// databases, with the drivers of the program's module.
package dialects
