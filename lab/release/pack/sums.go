package pack

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// Sums lists the checksums of files, as sha256sum --check reads them.
func Sums(files []File) File {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	var out []byte
	for _, f := range sorted {
		out = fmt.Appendf(out, "%x  %s\n", sha256.Sum256(f.Content), f.Name)
	}
	return File{"SHA256SUMS", 0o644, out}
}
