package notifiers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The headers of a signed request, as of Standard Webhooks 1.0.0, which the
// webhooks of an outbox use too.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// The bounds of a signing key, in bytes, and the mark before its text.
const (
	minSigningKey    = 24
	maxSigningKey    = 64
	signingKeyPrefix = "whsec_"
)

// parseSigningKey reads a key; the error does not contain it.
func parseSigningKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), signingKeyPrefix))
	if err != nil || len(key) < minSigningKey || len(key) > maxSigningKey {
		return nil, errors.New("its secret must be the base64 of 24 to 64 random bytes; create one with: openssl rand -base64 32")
	}
	return key, nil
}

// sign sets the headers of a request that is sent now. Without a key it has no
// signature.
func sign(header http.Header, id uuid.UUID, now time.Time, body []byte, keyText string) error {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(headerID, id.String())
	header.Set(headerTimestamp, timestamp)
	if keyText == "" {
		return nil
	}
	key, err := parseSigningKey(keyText)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id.String() + "." + timestamp + "."))
	mac.Write(body)
	header.Set(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}
