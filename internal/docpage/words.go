package docpage

import (
	"regexp"
	"strings"
)

var (
	generated = regexp.MustCompile(`(?s)<!-- written by make .*?` + end)
	comment   = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// Words counts the words that people have written on a page: those outside of
// blocks of code, comments and the parts that make targets write.
func Words(page string) int {
	for _, other := range []*regexp.Regexp{generated, comment, codeBlock} {
		page = other.ReplaceAllString(page, "")
	}
	return len(strings.Fields(page))
}
