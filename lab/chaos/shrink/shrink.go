// Package shrink finds a short part of a list that still fails.
package shrink

import "slices"

// Minimize returns a part of items, in their order, for which fails still reports
// true, by delta debugging (ddmin): it is 1-minimal, which means that without any
// one of its items it does not fail. fails must be true for items. Minimize stops
// early, with the shortest failing part so far, when more returns false.
func Minimize[T any](items []T, fails func([]T) bool, more func() bool) []T {
	parts := 2
	for len(items) > 1 && more() {
		shorter, found := try(items, parts, fails, more)
		switch {
		case found && len(shorter) == chunk(len(items), parts):
			items, parts = shorter, 2 // a part alone fails
		case found:
			items, parts = shorter, max(parts-1, 2)
		case parts < len(items):
			parts = min(2*parts, len(items))
		default:
			return items
		}
	}
	return items
}

// try looks for a failure in each part alone, and then in all but each part.
func try[T any](items []T, parts int, fails func([]T) bool, more func() bool) ([]T, bool) {
	for _, complement := range []bool{false, true} {
		if complement && parts == 2 {
			break // each is the other part
		}
		size := chunk(len(items), parts)
		for from := 0; from < len(items); from += size {
			if !more() {
				return nil, false
			}
			to := min(from+size, len(items))
			part := slices.Clone(items[from:to])
			if complement {
				part = slices.Concat(items[:from], items[to:])
			}
			if len(part) < len(items) && fails(part) {
				return part, true
			}
		}
	}
	return nil, false
}

func chunk(items, parts int) int { return (items + parts - 1) / parts }
