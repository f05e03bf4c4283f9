package console

import (
	"unicode"

	"golang.org/x/text/width"
)

// cellsOf returns how many columns of a terminal a character takes: those of East Asian
// scripts and emoji take two.
func cellsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// cells returns how many columns of a terminal a text takes.
func cells(text string) (n int) {
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}
