package alerts

import "strings"

// The most bytes of a label or an annotation, and of an error, that are kept.
const (
	maxText  = 4096
	maxError = 1000
)

// storable is a text that PostgreSQL takes: valid, without the byte 0, and of so
// many bytes at most. What comes of other programs, such as the labels of an
// application's metrics or the answer of a mail server, may be anything, and one
// text that is refused would hold up all alerts.
func storable(text string, most int) string {
	text = text[:min(len(text), most)]
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}
