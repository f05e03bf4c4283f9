// Package nearest guesses the meaning of a mistyped word.
package nearest

import "unicode/utf8"

// Of returns the candidate nearest to a mistyped word, or "" if none is near: at most a
// third of its characters may differ, but always one.
func Of(word string, candidates []string) string {
	best, least := "", 0
	for _, candidate := range candidates {
		most := max(1, utf8.RuneCountInString(candidate)/3)
		if utf8.RuneCountInString(word) > utf8.RuneCountInString(candidate)+most {
			continue // a long word is not worth comparing
		}
		edits := distance(word, candidate)
		if edits <= most && (best == "" || edits < least) {
			best, least = candidate, edits
		}
	}
	return best
}

// distance is how many slips turn a into b: characters inserted, deleted, replaced
// by another, or swapped with their neighbor.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1) // rows[i][j] is the distance of the first i and j characters
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			replaced := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
