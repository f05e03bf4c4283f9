package printable

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longestLabel bounds a label of a metric, in bytes. Of a longer text the
// beginning is kept, and a digest of all of it.
const longestLabel = 512

// cutMark stands between the beginning and the digest.
const cutMark = "…#"

// Label is Text for the value of a metric's label. Different texts stay different, since
// two equal series would make all metrics unreadable: text in the form of an escape is
// escaped once more.
func Label(text string) string {
	if IsText(text) && len(text) <= longestLabel && !strings.Contains(text, `\u`) && !strings.Contains(text, `\x`) && !strings.Contains(text, cutMark) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	shown := strings.ReplaceAll(Text(strings.ReplaceAll(text, `\`, `\\`)), cutMark, `\u2026#`)
	if len(shown) <= longestLabel {
		return shown
	}
	begin := strings.ToValidUTF8(shown[:longestLabel], "")
	return begin + cutMark + hex.EncodeToString(sum[:8])
}
