package notifiers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/program/notifier"
)

// The headers of a signed request, as of Standard Webhooks 1.0.0, also used by the
// webhooks of an outbox.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// sign sets the headers of a request at the time of sending. Without a key it has no
// signature.
func sign(header http.Header, id uuid.UUID, now time.Time, body []byte, keyText string) error {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(headerID, id.String())
	header.Set(headerTimestamp, timestamp)
	if keyText == "" {
		return nil
	}
	key, err := notifier.ParseSigningKey(keyText)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id.String() + "." + timestamp + "."))
	mac.Write(body)
	header.Set(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}
