package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/outbox"
)

// Event is a message as a CloudEvent 1.0 in JSON. Receivers can decode requests into it.
type Event struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"` // of the message
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Time            time.Time       `json:"time,omitzero"`
	DataContentType string          `json:"datacontenttype"`
	Topic           string          `json:"tenuretopic"`
	Role            string          `json:"tenurerole"`
	Term            string          `json:"tenureterm"`     // a decimal number; it can exceed the integers of CloudEvents
	Position        string          `json:"tenureposition"` // see [outbox.ParsePosition]
	Correlation     string          `json:"correlationid,omitempty"`
	Causation       string          `json:"causationid,omitempty"`
	Data            json.RawMessage `json:"data"`
}

func newEvent(source string, m outbox.Message) Event {
	return Event{
		SpecVersion: "1.0", ID: m.ID.String(), Source: source, Type: m.Event.Type,
		Time: m.Event.OccurredAt.UTC(), DataContentType: "application/json",
		Topic: m.Topic, Role: m.Role, Term: strconv.FormatInt(m.Term, 10), Position: m.Position().String(),
		Correlation: idText(m.Event.Correlation), Causation: idText(m.Event.Causation), Data: m.Event.Data,
	}
}

func idText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// setHeaders sets the headers of a request in binary mode: the attributes of the event.
func (e Event) setHeaders(header http.Header) {
	for name, value := range map[string]string{
		"specversion": e.SpecVersion, "id": e.ID, "source": e.Source, "type": e.Type,
		"tenuretopic": e.Topic, "tenurerole": e.Role, "tenureterm": e.Term, "tenureposition": e.Position,
		"correlationid": e.Correlation, "causationid": e.Causation,
	} {
		if value != "" {
			header.Set("Ce-"+name, headerValue(value))
		}
	}
	if !e.Time.IsZero() {
		header.Set("Ce-Time", e.Time.Format(time.RFC3339Nano))
	}
	header.Set("Content-Type", e.DataContentType)
}

// headerValue encodes a value as section 3.1.3.2 of the HTTP binding requires.
func headerValue(value string) string {
	var encoded strings.Builder
	for _, b := range []byte(value) {
		if b <= ' ' || b >= 0x7f || b == '"' || b == '%' {
			fmt.Fprintf(&encoded, "%%%02X", b)
		} else {
			encoded.WriteByte(b)
		}
	}
	return encoded.String()
}
