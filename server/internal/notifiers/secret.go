package notifiers

import (
	"fmt"
	"strings"

	"github.com/exactly-one/tenure/internal/program/secretfile"
)

// secret is a text not to be shown, or its file.
type secret struct{ text, file string }

// maxSecret is far above every honest secret.
const maxSecret = 64 << 10

// String hides the secret.
func (secret) String() string { return "********" }

// GoString hides the secret.
func (s secret) GoString() string { return s.String() }

// read returns the current secret.
func (s secret) read() (string, error) {
	if s.file == "" {
		return s.text, nil
	}
	data, err := secretfile.Read(s.file, maxSecret)
	if err != nil {
		return "", fmt.Errorf("the file of a secret: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("the file of a secret, %s, is empty", s.file)
	}
	return text, nil
}
