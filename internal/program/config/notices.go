package config

import (
	"fmt"
)

// Notices returns lines about doubtful content of a file, short of errors: alerts on
// unknown metrics, secrets in the file itself, and times in contradiction to a default.
func (f *File) Notices() []string {
	if f == nil {
		return nil
	}
	notices := f.doubtfulAlerts()
	if contradiction := f.leaseTooShort(); contradiction != "" {
		notices = append(notices, fmt.Sprintf("%s: %s; the lease is the default, unless a flag or a variable sets it", f.name, contradiction))
	}
	return notices
}
