package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/outbox/webhook"
)

// decode returns the events of a request in any format.
func decode(request *http.Request, body []byte) ([]webhook.Event, error) {
	var err error
	switch kind := request.Header.Get("Content-Type"); kind {
	case "application/cloudevents-batch+json; charset=UTF-8":
		var events []webhook.Event
		err = json.Unmarshal(body, &events)
		return events, err
	case "application/cloudevents+json; charset=UTF-8":
		var event webhook.Event
		err = json.Unmarshal(body, &event)
		return []webhook.Event{event}, err
	case "application/json":
		get := func(name string) string {
			value, failure := url.PathUnescape(request.Header.Get("Ce-" + name))
			if failure != nil {
				err = failure
			}
			return value
		}
		event := webhook.Event{
			SpecVersion: get("Specversion"), ID: get("Id"), Source: get("Source"), Type: get("Type"), DataContentType: kind,
			Topic: get("Tenuretopic"), Role: get("Tenurerole"), Term: get("Tenureterm"), Position: get("Tenureposition"),
			Correlation: get("Correlationid"), Causation: get("Causationid"), Data: body,
		}
		if at := get("Time"); at != "" {
			event.Time, err = time.Parse(time.RFC3339Nano, at)
		}
		return []webhook.Event{event}, err
	default:
		return nil, fmt.Errorf("content type %q", kind)
	}
}

// attribute returns the attribute of an event that corresponds to a header.
func attribute(event webhook.Event, name string) string {
	return map[string]string{
		outbox.HeaderID: event.ID, outbox.HeaderTerm: event.Term, outbox.HeaderPosition: event.Position,
	}[name]
}
