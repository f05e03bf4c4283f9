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
	"unicode/utf8"

	"github.com/exactly-one/tenure/internal/program/notifier"
)

// message is what a receiver shows of a notification.
type message struct {
	text  string // on a lock screen
	link  string // to the page on alerts
	links string // where those of the alert are
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
		return message{subject, string(body), string(body)}
	}
	t.Fatalf("no mail in %q", heard)
	return message{}
}

// shownBy are the parts of a request that each receiver shows. notifier.PagerDuty shows the
// incident that an alert opened, which is not changed by the event that resolves it.
var shownBy = map[string]func(t *testing.T, body string) message{
	notifier.Slack: func(t *testing.T, body string) message {
		t.Helper()
		text := fmt.Sprint(decode(t, body)["text"])
		return message{text: text, link: text}
	},
	notifier.PagerDuty: func(t *testing.T, body string) message {
		t.Helper()
		event := decode(t, body)
		payload, _ := event["payload"].(map[string]any)
		return message{text: fmt.Sprint(payload["summary"]), link: fmt.Sprint(event["client_url"])}
	},
	notifier.Webhook: func(t *testing.T, body string) message {
		t.Helper()
		event := decode(t, body)
		return message{text: fmt.Sprint(event["title"]), link: fmt.Sprint(event["url"])}
	},
	notifier.Alertmanager: func(t *testing.T, body string) message {
		t.Helper()
		all := decodeAlertmanager(t, body)
		return message{text: all[0].Annotations["title"], link: all[0].Generator}
	},
}

func decodeAlertmanager(t *testing.T, body string) (all []alertmanagerAlert) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &all); err != nil || len(all) == 0 {
		t.Fatalf("%v in %s", err, body)
	}
	return all
}

// deliver sends a batch by a notifier of a type and returns what its receiver shows.
func deliver(t *testing.T, kind string, batch Batch) message {
	t.Helper()
	if kind == notifier.Email {
		server := &mailServer{startTLS: true, greets: true}
		trust := startMail(t, server)
		n := mustOpen(t, Config{Type: notifier.Email, SMTP: server.address, From: "tenure@example.com", To: []string{"a@example.com"}, TLS: trust})
		if err := n.Send(t.Context(), "", batch); err != nil {
			t.Fatal(err)
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		return shownByEmail(t, server.heard)
	}
	body := deliverBody(t, kind, batch)
	shown := shownBy[kind](t, body)
	shown.links = linksShownBy[kind](t, body)
	return shown
}

// deliverBody sends a batch by a notifier of a type and returns the body of the request.
func deliverBody(t *testing.T, kind string, batch Batch) string {
	t.Helper()
	url, requests := receive(t, 200, "ok")
	n := mustOpen(t, Config{Type: kind, URL: url, RoutingKey: "key"})
	if err := n.Send(t.Context(), "", batch); err != nil {
		t.Fatal(err)
	}
	return (<-requests).body
}

// Whatever the type of a notifier, the first 80 characters say how bad it is, where, what
// and how long, and the page on alerts is linked if its address is known.
func TestEveryTypeSaysWhatWhereHowBadAndLinks(t *testing.T) {
	t.Parallel()
	fault := noLeader("no leader for scheduler")
	for _, kind := range notifier.Types {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind != notifier.Email && shownBy[kind] == nil {
				t.Fatalf("the test does not know what a receiver of type %s shows", kind)
			}
			for _, test := range []struct {
				alert Alert
				words []string
			}{
				{fault, []string{"CRITICAL", "billing", "no leader for scheduler", "41 s"}},
				{fault.over(4 * time.Minute), []string{"OVER", "billing", "no leader for scheduler", "4 min"}},
			} {
				if kind == notifier.PagerDuty && !test.alert.Firing() {
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

// linksShownBy are the texts in which each receiver finds the links of an alert.
var linksShownBy = map[string]func(t *testing.T, body string) string{
	notifier.Slack: func(t *testing.T, body string) string {
		t.Helper()
		attachments, _ := decode(t, body)["attachments"].([]any)
		attachment, _ := attachments[0].(map[string]any)
		return fmt.Sprint(attachment["text"])
	},
	notifier.PagerDuty: func(t *testing.T, body string) string { t.Helper(); return fmt.Sprint(decode(t, body)["links"]) },
	notifier.Webhook:   func(t *testing.T, body string) string { t.Helper(); return fmt.Sprint(decode(t, body)["alerts"]) },
	notifier.Alertmanager: func(t *testing.T, body string) string {
		t.Helper()
		return decodeAlertmanager(t, body)[0].Annotations["links"]
	},
}

// Whatever the type of a notifier, a message has the links of its alert, in the form of its
// receiver: a name cannot end a link or become markup, and the title stays unchanged.
func TestEveryTypeHasTheLinksOfTheAlert(t *testing.T) {
	t.Parallel()
	fault := noLeader("no leader for scheduler")
	fault.Links = []Link{{"Logs (a|<!here>)", "https://logs.example.com/search?q=a%7C%3C%21here%3E&node=api-1|x"}, {"Wiki", "https://wiki.example.com/no_leader"}}
	plain := "Logs (a|<!here>): https://logs.example.com/search?q=a%7C%3C%21here%3E&node=api-1|x\n"
	for kind, want := range map[string][]string{
		notifier.Email: {"\r\n  " + strings.TrimSuffix(plain, "\n") + "\r\n  Wiki: https://wiki.example.com/no_leader\r\n", "\r\n  runbook: https://r.example.com/scheduler\r\n"},
		notifier.Slack: {
			"<https://logs.example.com/search?q=a%7C%3C%21here%3E&amp;node=api-1%7Cx|Logs (a/&lt;!here&gt;)> · <https://wiki.example.com/no_leader|Wiki>\n",
			"runbook: https://r.example.com/scheduler",
		},
		notifier.PagerDuty: {
			"map[href:https://r.example.com/scheduler text:Runbook]", "map[href:https://wiki.example.com/no_leader text:Wiki]",
			"map[href:https://logs.example.com/search?q=a%7C%3C%21here%3E&node=api-1|x text:Logs (a|<!here>)]",
		},
		notifier.Webhook:      {"links:[map[name:Logs (a|<!here>) url:https://logs.example.com/search?q=a%7C%3C%21here%3E&node=api-1|x] map[name:Wiki url:https://wiki.example.com/no_leader]]"},
		notifier.Alertmanager: {plain + "Wiki: https://wiki.example.com/no_leader"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			batch := Batch{Cluster: "billing", At: fault.Since.Add(41 * time.Second), Alerts: []Alert{fault}}
			got := deliver(t, kind, batch)
			for _, part := range want {
				if !strings.Contains(got.links, part) {
					t.Errorf("no %q in %q", part, got.links)
				}
			}
			bare := fault
			bare.Links = nil
			batch.Alerts = []Alert{bare}
			without := deliver(t, kind, batch)
			if shortened(got.text, maxTitle) != shortened(without.text, maxTitle) || strings.Contains(without.links, "wiki.example.com") {
				t.Errorf("with links %q, without %q and the links %q", got.text, without.text, without.links)
			}
		})
	}
}

// Links take at most half of Slack's text, and none is cut.
func TestSlackOmitsLinksWithoutRoom(t *testing.T) {
	t.Parallel()
	fault := noLeader(strings.Repeat("long ", 1_000))
	for range 20 {
		fault.Links = append(fault.Links, Link{"Logs", "https://logs.example.com/" + strings.Repeat("x", 300)})
	}
	text := linksShownBy[notifier.Slack](t, deliverBody(t, notifier.Slack, Batch{Alerts: []Alert{fault}}))
	if n := strings.Count(text, "|Logs>"); n != 4 || utf8.RuneCountInString(text) > maxSlackText || !strings.Contains(text, "long long") {
		t.Errorf("%d links in %d characters", n, utf8.RuneCountInString(text))
	}
}
