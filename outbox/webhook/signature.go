package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
)

// The headers of a signed request, as Standard Webhooks 1.0.0 defines them.
const (
	HeaderID        = "Webhook-Id"        // the same at every attempt with the same messages
	HeaderTimestamp = "Webhook-Timestamp" // the time of the attempt, in seconds since 1970
	HeaderSignature = "Webhook-Signature" // one for each secret, separated by spaces
)

// ReplayWindow is how far the timestamp of a request may differ from the receiver's
// clock for [Verify].
const ReplayWindow = 5 * time.Minute

// The limits of a secret and the prefix of its text.
const (
	minSecretBytes = 24
	maxSecretBytes = 64
	secretPrefix   = "whsec_"
)

// Secret signs or verifies requests. Printing a Secret does not reveal it.
type Secret struct{ key []byte }

// ParseSecret parses a secret: the base64 of 24 to 64 random bytes, with or without the
// prefix "whsec_". An error matches tenure.ErrInvalidConfig and does not contain the text.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), secretPrefix))
	if err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return Secret{}, fmt.Errorf("%w: a secret must be the base64 of %d to %d random bytes: create one with openssl rand -base64 32",
			tenure.ErrInvalidConfig, minSecretBytes, maxSecretBytes)
	}
	return Secret{key}, nil
}

// NewSecret creates a secret and returns it with its text for the receiver.
func NewSecret() (secret Secret, text string) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return Secret{key}, secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// String hides the secret.
func (Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// sign returns the signature of a request.
func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign sets the signature headers of a request.
func sign(header http.Header, id string, now time.Time, body []byte, secrets []Secret) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(HeaderID, id)
	header.Set(HeaderTimestamp, timestamp)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = secret.sign(id, timestamp, body)
	}
	if len(signatures) > 0 {
		header.Set(HeaderSignature, strings.Join(signatures, " "))
	}
}

// ErrSignature means that a request is not signed with any of the secrets, was changed, or
// is too old.
var ErrSignature = errors.New("the signature is missing, invalid or expired")

// Verify checks a request for a receiver: it must be signed with one of the secrets within
// the [ReplayWindow]. An error matches [ErrSignature]. With several secrets, a receiver
// accepts a new one before senders use it. The comparison takes constant time.
//
// A request can arrive twice within the window, for example after a lost response: drop
// events with known ids.
func Verify(header http.Header, body []byte, secrets ...Secret) error {
	return verify(header, body, time.Now(), secrets)
}

func verify(header http.Header, body []byte, now time.Time, secrets []Secret) error {
	timestamp := header.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || header.Get(HeaderID) == "" || header.Get(HeaderSignature) == "" {
		return fmt.Errorf("%w: %s, %s or %s is missing or malformed", ErrSignature, HeaderID, HeaderTimestamp, HeaderSignature)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > ReplayWindow || age < -ReplayWindow {
		return fmt.Errorf("%w: its timestamp is more than %v from now", ErrSignature, ReplayWindow)
	}
	const maxSignatures = 16
	given := strings.Fields(header.Get(HeaderSignature))
	found := false
	for _, secret := range secrets {
		if len(secret.key) < minSecretBytes {
			continue // the zero Secret, with which anyone can sign
		}
		wanted := []byte(secret.sign(header.Get(HeaderID), timestamp, body))
		for _, signature := range given[:min(len(given), maxSignatures)] {
			found = hmac.Equal(wanted, []byte(signature)) || found
		}
	}
	if !found {
		return fmt.Errorf("%w: no signature matches", ErrSignature)
	}
	return nil
}
