package notifiers

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"
)

// message is what a receiver shows of a notification.
type message struct {
	text string // on a lock screen
	link string
}

// shownByEmail is a mail as its reader sees it.
func shownByEmail(t *testing.T, heard []string) message {
	t.Helper()
	for _, text := range heard {
		if !strings.HasPrefix(text, "From:") {
			continue
		}
		received, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(received.Header.Get("Subject"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(received.Body))
		if err != nil {
			t.Fatal(err)
		}
		return message{subject, string(body)}
	}
	t.Fatalf("no mail in %q", heard)
	return message{}
}

// shownBy are the parts of a request that each receiver shows. PagerDuty shows the
// incident that an alert opened, which is not changed by the event that resolves it.
var shownBy = map[string]func(t *testing.T, body string) message{
	Slack: func(t *testing.T, body string) message {
		t.Helper()
		text := fmt.Sprint(decode(t, body)["text"])
		return message{text, text}
	},
	PagerDuty: func(t *testing.T, body string) message {
		t.Helper()
		event := decode(t, body)
		payload, _ := event["payload"].(map[string]any)
		return message{fmt.Sprint(payload["summary"]), fmt.Sprint(event["client_url"])}
	},
	Webhook: func(t *testing.T, body string) message {
		t.Helper()
		event := decode(t, body)
		return message{fmt.Sprint(event["title"]), fmt.Sprint(event["url"])}
	},
	Alertmanager: func(t *testing.T, body string) message {
		t.Helper()
		var all []alertmanagerAlert
		if err := json.Unmarshal([]byte(body), &all); err != nil || len(all) == 0 {
			t.Fatalf("%v in %s", err, body)
		}
		return message{all[0].Annotations["title"], all[0].Generator}
	},
}

// deliver sends a batch by a notifier of a type and returns what its receiver shows.
func deliver(t *testing.T, kind string, batch Batch) message {
	t.Helper()
	if kind == Email {
		server := &mailServer{startTLS: true, greets: true}
		trust := startMail(t, server)
		n := mustOpen(t, Config{Type: Email, SMTP: server.address, From: "tenure@example.com", To: []string{"a@example.com"}, TLS: trust})
		if err := n.Send(t.Context(), "", batch); err != nil {
			t.Fatal(err)
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		return shownByEmail(t, server.heard)
	}
	url, requests := receive(t, 200, "ok")
	n := mustOpen(t, Config{Type: kind, URL: url, RoutingKey: "key"})
	if err := n.Send(t.Context(), "", batch); err != nil {
		t.Fatal(err)
	}
	return shownBy[kind](t, (<-requests).body)
}

// Whatever the type of a notifier, the first 80 characters say how bad it is, where, what
// and how long, and the page on alerts is linked if its address is known.
func TestEveryTypeSaysWhatWhereHowBadAndLinks(t *testing.T) {
	t.Parallel()
	fault := noLeader("no leader for scheduler")
	for _, kind := range Types {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind != Email && shownBy[kind] == nil {
				t.Fatalf("the test does not know what a receiver of type %s shows", kind)
			}
			for _, test := range []struct {
				alert Alert
				words []string
			}{
				{fault, []string{"CRITICAL", "billing", "no leader for scheduler", "41 s"}},
				{fault.over(4 * time.Minute), []string{"OVER", "billing", "no leader for scheduler", "4 min"}},
			} {
				if kind == PagerDuty && !test.alert.Firing() {
					continue
				}
				batch := Batch{Cluster: "billing", URL: "https://tenure.example.com/", At: fault.Since.Add(41 * time.Second), Alerts: []Alert{test.alert}}
				got := deliver(t, kind, batch)
				for _, word := range test.words {
					if begin := shortened(got.text, maxTitle); !strings.Contains(begin, word) {
						t.Errorf("the first characters are %q; want them to contain %q", begin, word)
					}
				}
				if !strings.Contains(got.link, "https://tenure.example.com/#/alerts") {
					t.Errorf("no link in %q", got.link)
				}
				batch.URL = ""
				if got := deliver(t, kind, batch); strings.Contains(got.link, "#/alerts") {
					t.Errorf("without an external URL there is a link in %q", got.link)
				}
			}
		})
	}
}
