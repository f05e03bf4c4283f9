// Package recipes tests the code of the recipes for GORM, bun, sqlx, ent and River with
// these libraries. It exports nothing and is not released.
package recipes
