package outbox

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/processor"
)

// Message is an event on its way.
type Message struct {
	// ID is the same whenever the event is sent to the topic, and no other's.
	// Only a repair after a restore into another database cluster changes it.
	ID    uuid.UUID
	Topic string
	Role  string // the role under which it is sent
	Term  int64  // of that role: only ever grows
	Event processor.Event
}

// The names of what a message carries beside its data, for publishers that have
// headers.
const (
	HeaderID          = "Tenure-Message-Id"
	HeaderTopic       = "Tenure-Topic"
	HeaderRole        = "Tenure-Role"
	HeaderTerm        = "Tenure-Term"
	HeaderType        = "Tenure-Event-Type"
	HeaderPosition    = "Tenure-Position" // as of [ParsePosition]; grows within a topic
	HeaderOccurredAt  = "Tenure-Occurred-At"
	HeaderCorrelation = "Tenure-Correlation-Id"
	HeaderCausation   = "Tenure-Causation-Id"
)

// Headers returns what the message carries beside its data. The ids that the
// event does not have are left out.
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

// space is where the ids of messages come from.
var space = uuid.MustParse("8f3c6a52-0f4e-5d0a-9a53-6b1f0d0c7e11")

// messageID derives the id of a message from the topic and the event's place,
// and from what it is and when: a server that took over without the last commits
// may give their places to other events.
func messageID(topic string, event processor.Event) uuid.UUID {
	name := append([]byte(topic), 0)
	name = strconv.AppendUint(name, event.Transaction, 10)
	name = append(name, ':')
	name = strconv.AppendInt(name, event.Position, 10)
	name = append(name, ':')
	name = strconv.AppendInt(name, event.OccurredAt.UnixMicro(), 10)
	name = append(name, ':')
	name = append(name, event.Type...)
	return uuid.NewSHA1(space, name)
}
