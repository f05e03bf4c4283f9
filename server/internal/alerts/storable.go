package alerts

import "strings"

// The maximum bytes to keep of a label or an annotation, and of an error.
const (
	maxText  = 4096
	maxError = 1000
)

// storable is a text fit for PostgreSQL: valid, without the byte 0, and of so many bytes
// at most. Texts of other programs, such as the labels of an application's metrics or the
// answer of a mail server, may be anything, and one refused text would hold up all
// alerts.
func storable(text string, most int) string {
	text = text[:min(len(text), most)]
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}
