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

// The headers of a signed request, as of Standard Webhooks 1.0.0.
const (
	HeaderID        = "Webhook-Id"        // the same for all attempts with the same messages
	HeaderTimestamp = "Webhook-Timestamp" // of the attempt, in seconds since 1970
	HeaderSignature = "Webhook-Signature" // one for each secret, separated by spaces
)

// ReplayWindow is how far a request's timestamp may be from the receiver's clock
// for [Verify].
const ReplayWindow = 5 * time.Minute

// The bounds of a secret, in bytes, and the mark before its text.
const (
	minSecret    = 24
	maxSecret    = 64
	secretPrefix = "whsec_"
)

// Secret signs requests, or verifies them. It does not show itself when printed.
type Secret struct{ key []byte }

// ParseSecret reads a secret: the base64 of 24 to 64 random bytes, with or
// without "whsec_" before it. It returns an error that matches
// tenure.ErrInvalidConfig, and does not contain the text, for anything else.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), secretPrefix))
	if err != nil || len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("%w: a secret is the base64 of %d to %d random bytes; make one with: openssl rand -base64 32",
			tenure.ErrInvalidConfig, minSecret, maxSecret)
	}
	return Secret{key}, nil
}

// NewSecret makes a secret and returns it with the text to share with the
// receiver.
func NewSecret() (secret Secret, text string) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return Secret{key}, secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// String hides the secret.
func (Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// sign returns the signature of what is sent.
func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign sets the headers of a request that is sent now.
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

// ErrSignature means that a request was not signed with any of the secrets, not
// as it arrived, or not lately.
var ErrSignature = errors.New("the request is not signed as it should be")

// Verify checks, for a receiver, that a request was signed with one of the
// secrets within the [ReplayWindow]; its error matches [ErrSignature] otherwise.
// More than one secret lets a receiver take the next one before senders use it.
// It takes the same time wherever a signature differs.
//
// A request can still arrive twice within the window, as it does when its
// response was lost: drop events whose ids are known.
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
	const most = 16 // signatures that are looked at
	given := strings.Fields(header.Get(HeaderSignature))
	found := false
	for _, secret := range secrets {
		if len(secret.key) < minSecret {
			continue // not from ParseSecret: it would accept what anybody can sign
		}
		wanted := []byte(secret.sign(header.Get(HeaderID), timestamp, body))
		for _, signature := range given[:min(len(given), most)] {
			found = hmac.Equal(wanted, []byte(signature)) || found
		}
	}
	if !found {
		return fmt.Errorf("%w: no signature fits", ErrSignature)
	}
	return nil
}
