//go:build unix && !linux

package guardian

import "os"

// executable returns this program.
func executable() (string, error) { return os.Executable() }
