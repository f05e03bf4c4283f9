// Package dialects has no code: its tests run what package lease promises on real
// databases, with the drivers that only the program's module has.
package dialects
