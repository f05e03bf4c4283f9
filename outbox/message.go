package outbox

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/processor"
)

// Message is an event to publish.
type Message struct {
	// ID identifies the event within the topic and is the same at every attempt. Only
	// a repair after a restore into another database cluster changes it.
	ID    uuid.UUID
	Topic string
	Role  string // the role under which it is sent
	Term  int64  // the number of the role's term; it only increases
	Event processor.Event
}

// The names of the headers of a message, for publishers that support headers.
const (
	HeaderID          = "Tenure-Message-Id"
	HeaderTopic       = "Tenure-Topic"
	HeaderRole        = "Tenure-Role"
	HeaderTerm        = "Tenure-Term"
	HeaderType        = "Tenure-Event-Type"
	HeaderPosition    = "Tenure-Position" // see [ParsePosition]; it increases within a topic
	HeaderOccurredAt  = "Tenure-Occurred-At"
	HeaderCorrelation = "Tenure-Correlation-Id"
	HeaderCausation   = "Tenure-Causation-Id"
)

// Headers returns the headers of the message. Correlation and causation ids are absent if
// the event has none.
func (m Message) Headers() map[string]string {
	headers := map[string]string{
		HeaderID: m.ID.String(), HeaderTopic: m.Topic, HeaderRole: m.Role, HeaderTerm: strconv.FormatInt(m.Term, 10),
		HeaderType: m.Event.Type, HeaderPosition: m.Position().String(),
		HeaderOccurredAt: m.Event.OccurredAt.UTC().Format(time.RFC3339Nano),
	}
	if m.Event.Correlation != uuid.Nil {
		headers[HeaderCorrelation] = m.Event.Correlation.String()
	}
	if m.Event.Causation != uuid.Nil {
		headers[HeaderCausation] = m.Event.Causation.String()
	}
	return headers
}

// idNamespace is the UUID namespace of message ids.
var idNamespace = uuid.MustParse("8f3c6a52-0f4e-5d0a-9a53-6b1f0d0c7e11")

// messageID derives the id of a message from the topic and the event's cursor, time and
// type. The cursor is not enough: after a failover with lost commits, the server can give
// the same cursor to another event.
func messageID(topic string, event processor.Event) uuid.UUID {
	name := append([]byte(topic), 0)
	name = strconv.AppendUint(name, event.Transaction, 10)
	name = append(name, ':')
	name = strconv.AppendInt(name, event.Position, 10)
	name = append(name, ':')
	name = strconv.AppendInt(name, event.OccurredAt.UnixMicro(), 10)
	name = append(name, ':')
	name = append(name, event.Type...)
	return uuid.NewSHA1(idNamespace, name)
}
