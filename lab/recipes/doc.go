// Package recipes tests the code of the recipes for GORM, bun, sqlx, ent and River, and of
// the move from etcd, with these libraries. It exports nothing and is not released.
package recipes
