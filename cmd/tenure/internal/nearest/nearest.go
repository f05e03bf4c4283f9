// Package nearest finds what a mistyped word most likely meant.
package nearest

import "unicode/utf8"

// Of returns the candidate that a mistyped word most likely meant, or "" if none
// is near: at most a third of its characters may differ, but always one.
func Of(word string, candidates []string) string {
	best, least := "", 0
	for _, candidate := range candidates {
		edits := distance(word, candidate)
		if edits <= max(1, utf8.RuneCountInString(candidate)/3) && (best == "" || edits < least) {
			best, least = candidate, edits
		}
	}
	return best
}

// distance is the Levenshtein distance: how many characters must be inserted,
// deleted or replaced to turn a into b.
func distance(a, b string) int {
	to := []rune(b)
	row := make([]int, len(to)+1) // the distances from the part of a so far to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i, r := range []rune(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range to {
			replace := diagonal
			if r != to[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
