package notifiers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/notifier"
)

// request is what a receiver got.
type request struct {
	path   string
	header http.Header
	body   string
}

// receive starts a receiver that answers with a status and a text.
func receive(t *testing.T, status int, answer string) (url string, requests <-chan request) {
	t.Helper()
	got := make(chan request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.URL.Path, r.Header, string(body)}
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func mustOpen(t *testing.T, config Config) *Notifier {
	t.Helper()
	config.Name = "n"
	set, err := Open([]Config{config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	return set["n"]
}

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func firing() Alert {
	return Alert{
		ID: uuid.MustParse("11111111-1111-1111-1111-111111111111"), Name: "down", Severity: "critical", Value: 3, StartedAt: began,
		Labels:      map[string]string{"alertname": "down", "severity": "critical", "role": "<!channel> & co"},
		Annotations: map[string]string{"summary": "it is\r\nBcc: x", "description": "more", "runbook": "https://r"},
	}
}

func resolved() Alert {
	a := firing()
	a.ID, a.EndedAt = uuid.MustParse("22222222-2222-2222-2222-222222222222"), began.Add(time.Minute)
	return a
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return all
}

// TestSlackMessageHasNoForeignMarkup: several alerts in one message, to the channel of the address, and no
// markup of what comes from elsewhere.
func TestSlackMessageHasNoForeignMarkup(t *testing.T) {
	t.Parallel()
	url, requests := receive(t, 200, "ok")
	n := mustOpen(t, Config{Type: notifier.Slack, URL: url + "/services/T/B/key", Channel: "#usual"})
	if err := n.Send(t.Context(), "#ops", Batch{At: began.Add(41 * time.Second), Alerts: []Alert{firing(), resolved()}}); err != nil {
		t.Fatal(err)
	}
	r := <-requests
	message := decode(t, r.body)
	attachments, _ := message["attachments"].([]any)
	if r.path != "/services/T/B/key" || message["channel"] != "#ops" || len(attachments) != 2 {
		t.Fatalf("%+v", r)
	}
	if message["text"] != "CRITICAL tenure: it is Bcc: x and 1 more for 41 s (since 2026-11-21T12:00:00Z)" {
		t.Errorf("the text is %q", message["text"])
	}
	first, second := attachments[0].(map[string]any), attachments[1].(map[string]any)
	text := "more\nrunbook: https://r\nalert: down\nseverity: critical\nvalue: 3\nsince: 2026-11-21T12:00:00Z\nrole: &lt;!channel&gt; &amp; co"
	if first["color"] != "danger" || second["color"] != "good" || first["text"] != text || first["fallback"] != "down (role=&lt;!channel&gt; &amp; co)" {
		t.Errorf("%+v", attachments)
	}
	if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err != nil {
		t.Fatal(err)
	}
	if message := decode(t, (<-requests).body); message["channel"] != "#usual" {
		t.Errorf("%+v", message)
	}
}

// TestPagerDutyResolvesByKey: an incident is opened and resolved by the same key.
func TestPagerDutyResolvesByKey(t *testing.T) {
	t.Parallel()
	url, requests := receive(t, 202, `{"status":"success"}`)
	n := mustOpen(t, Config{Type: notifier.PagerDuty, URL: url + "/v2/enqueue", RoutingKey: "R0UT1NG"})
	for _, a := range []Alert{firing(), resolved()} {
		b := Batch{Cluster: "billing", URL: "https://t.example.com/x/", Incident: "api-1 crashed.", At: began.Add(41 * time.Second), Alerts: []Alert{a}}
		if err := n.Send(t.Context(), "", b); err != nil {
			t.Fatal(err)
		}
	}
	trigger, resolve := decode(t, (<-requests).body), decode(t, (<-requests).body)
	want := map[string]any{
		"routing_key": "R0UT1NG", "event_action": "trigger", "dedup_key": firing().Key(), "client": "Tenure",
		"client_url": "https://t.example.com/x/#/alerts", "links": []any{map[string]any{"href": "https://r", "text": "Runbook"}},
		"payload": map[string]any{
			"summary": "CRITICAL billing: it is Bcc: x for 41 s (since 2026-11-21T12:00:00Z)", "source": "billing", "severity": "critical", "timestamp": "2026-11-21T12:00:00Z",
			"component": "<!channel> & co", "class": "down",
			"custom_details": map[string]any{
				"value": "3", "summary": "it is\r\nBcc: x", "description": "more", "runbook": "https://r", "incident": "api-1 crashed.",
				"alertname": "down", "severity": "critical", "role": "<!channel> & co",
			},
		},
	}
	if !reflect.DeepEqual(trigger, want) {
		t.Errorf("%+v", trigger)
	}
	if want := map[string]any{"routing_key": "R0UT1NG", "event_action": "resolve", "dedup_key": firing().Key()}; !reflect.DeepEqual(resolve, want) {
		t.Errorf("%+v", resolve)
	}
	again, other := firing(), firing()
	again.StartedAt = began.Add(time.Hour)
	other.Labels["role"] = "b"
	if again.Key() == firing().Key() || other.Key() == firing().Key() {
		t.Error("two alerts have one key")
	}
}

// TestWebhookIsSignedWithStableID: a request is signed as Standard Webhooks has it, and an attempt that
// is made again has the same id.
func TestWebhookIsSignedWithStableID(t *testing.T) {
	t.Parallel()
	url, requests := receive(t, 204, "")
	key := []byte(strings.Repeat("k", 32))
	n := mustOpen(t, Config{Type: notifier.Webhook, URL: url, Secret: "whsec_" + base64.StdEncoding.EncodeToString(key)})
	strange := firing()
	strange.Value = math.Inf(1)
	for range 2 {
		if err := n.Send(t.Context(), "", Batch{Cluster: "billing", URL: "https://t.example.com", Incident: "api-1 crashed.", Alerts: []Alert{strange, resolved()}}); err != nil {
			t.Fatal(err)
		}
	}
	first, second := <-requests, <-requests
	for _, r := range []request{first, second} {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", r.header.Get("Webhook-Id"), r.header.Get("Webhook-Timestamp"), r.body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.header.Get("Webhook-Signature") != want {
			t.Errorf("the signature is %q; want %q", r.header.Get("Webhook-Signature"), want)
		}
	}
	if id := first.header.Get("Webhook-Id"); id == "" || id != second.header.Get("Webhook-Id") {
		t.Errorf("the ids are %q and %q", id, second.header.Get("Webhook-Id"))
	}
	list, _ := decode(t, first.body)["alerts"].([]any)
	if len(list) != 2 {
		t.Fatal(first.body)
	}
	a, b := list[0].(map[string]any), list[1].(map[string]any)
	if a["status"] != "firing" || a["value"] != "+Inf" || a["ended_at"] != nil || b["status"] != "resolved" || b["value"] != 3.0 ||
		b["ended_at"] != "2026-11-21T12:01:00Z" || a["key"] != b["key"] || a["id"] == b["id"] {
		t.Errorf("%s", first.body)
	}
	message := decode(t, first.body)
	title, _ := message["title"].(string)
	if message["cluster"] != "billing" || message["url"] != "https://t.example.com/#/alerts" || message["incident"] != "api-1 crashed." ||
		!strings.HasPrefix(title, "CRITICAL billing: it is Bcc: x and 1 more for ") || a["since"] != "2026-11-21T12:00:00Z" {
		t.Errorf("%s", first.body)
	}
}

func TestWebhookSendsUpToHundredAlerts(t *testing.T) {
	t.Parallel()
	if n := mustOpen(t, Config{Type: notifier.Webhook, URL: "https://example.com"}); n.Batch() != 100 {
		t.Errorf("a message has up to %d alerts, want 100", n.Batch())
	}
}

func TestNotifierSendsSixtyMessagesAMinuteByDefault(t *testing.T) {
	t.Parallel()
	if n := mustOpen(t, Config{Type: notifier.Webhook, URL: "https://example.com"}); n.PerMinute() != 60 {
		t.Errorf("%d messages are sent in a minute, want 60", n.PerMinute())
	}
}

// TestAlertmanagerAlertOutlivesInterval: what fires is said to end some time after the next message
// about it.
func TestAlertmanagerAlertOutlivesInterval(t *testing.T) {
	t.Parallel()
	url, requests := receive(t, 200, "")
	n := mustOpen(t, Config{Type: notifier.Alertmanager, URL: url + "/base"})
	if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing(), resolved()}}); err != nil {
		t.Fatal(err)
	}
	r := <-requests
	var got []struct {
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got) != 2 || r.path != "/base/api/v2/alerts" {
		t.Fatalf("%v: %+v", err, r)
	}
	if ahead := time.Until(got[0].EndsAt); n.Refresh() != time.Minute || ahead < time.Minute || got[0].Labels["alertname"] != "down" || !got[0].StartsAt.Equal(began) {
		t.Errorf("%+v", got[0])
	}
	if !got[1].EndsAt.Equal(began.Add(time.Minute)) {
		t.Errorf("%+v", got[1])
	}
	ahead := firing()
	ahead.StartedAt = time.Now().Add(time.Hour)
	if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{ahead}}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte((<-requests).body), &got); err != nil || got[0].EndsAt.Before(got[0].StartsAt) {
		t.Errorf("%v: of a clock that is ahead: %+v", err, got[0])
	}
}

// TestErrorsHideSecrets: an error states who refused and how, and when to try again, but no
// secret, even if the answer repeats it.
func TestErrorsHideSecrets(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 400, 401, 404, 413, 422, 429, 500} {
		url, _ := receive(t, status, "no /services/T/B/key for R0UT1NG")
		for _, config := range []Config{
			{Type: notifier.Slack, URL: url + "/services/T/B/key"},
			{Type: notifier.PagerDuty, URL: url, RoutingKey: "R0UT1NG"},
			{Type: notifier.Webhook, URL: url + "/services/T/B/key"},
			{Type: notifier.Alertmanager, URL: url},
		} {
			err := mustOpen(t, config).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}})
			if err == nil || !strings.Contains(err.Error(), "the notifier n: 127.0.0.1:") ||
				!strings.Contains(err.Error(), fmt.Sprintf("answered %d", status)) {
				t.Errorf("%s, %d: %v", config.Type, status, err)
				continue
			}
			if strings.Contains(err.Error(), "T/B/key") && config.Type != notifier.PagerDuty && config.Type != notifier.Alertmanager ||
				strings.Contains(err.Error(), "R0UT1NG") && config.Type == notifier.PagerDuty {
				t.Errorf("%s, %d: the secret is in %v", config.Type, status, err)
			}
			var later *RetryAfterError
			if errors.As(err, &later) != (status == 429) || status == 429 && later.Delay != 7*time.Second {
				t.Errorf("%s, %d: %#v", config.Type, status, err)
			}
			var refused *RefusedError
			if errors.As(err, &refused) != slices.Contains([]int{400, 413, 422}, status) {
				t.Errorf("%s, %d: %#v", config.Type, status, err)
			}
		}
	}
	url, _ := receive(t, 403, "no k3yk3yk3y for user:pa55word with T0KEN of longsegment")
	secret := strings.Replace(url, "http://", "http://user:pa55word@", 1) + "/x/longsegment?token=T0KEN&key=k3yk3yk3y"
	refusal := mustOpen(t, Config{Type: notifier.Slack, URL: secret}).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}})
	for _, part := range []string{"pa55word", "T0KEN", "k3yk3yk3y", "longsegment"} {
		if refusal == nil || strings.Contains(refusal.Error(), part) {
			t.Errorf("the secret %s is in %v", part, refusal)
		}
	}
	cut := mustOpen(t, Config{Type: notifier.Slack, URL: "https://u:p@SSSS/SSSS@h/x"}).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}})
	if cut == nil || strings.Contains(cut.Error(), "SSSS") || !strings.Contains(cut.Error(), "escape the password") {
		t.Errorf("a URL with a password that is not escaped: %v, want an error without its parts", cut)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	err := mustOpen(t, Config{Type: notifier.Slack, URL: closed.URL + "/services/T/B/key"}).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}})
	if err == nil || strings.Contains(err.Error(), "services") || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("%v", err)
	}
}

// TestSecretFileIsReadAtEachAttempt: a secret in a file is read at each attempt.
func TestSecretFileIsReadAtEachAttempt(t *testing.T) {
	t.Parallel()
	url, requests := receive(t, 200, "")
	path := filepath.Join(t.TempDir(), "url")
	n := mustOpen(t, Config{Type: notifier.Slack, URLFile: path})
	if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err == nil || !strings.Contains(err.Error(), "the file of a secret") {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"/first", "/second"} {
		if err := os.WriteFile(path, []byte(url+want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err != nil {
			t.Fatal(err)
		}
		if r := <-requests; r.path != want {
			t.Errorf("the path is %s", r.path)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}})
	if err == nil || !strings.Contains(err.Error(), "chmod 0640 "+path) || strings.Contains(err.Error(), url) || len(requests) > 0 {
		t.Errorf("with a secret that every user can read, %d requests were sent: %v", len(requests), err)
	}
	if text := fmt.Sprintf("%v %+v %#v", n.transport, n.transport, secret{text: "hidden"}); strings.Contains(text, "hidden") {
		t.Error(text)
	}
}

// TestOpenRejectsInvalidConfigWithoutSecrets bad input, without its secrets.
func TestOpenRejectsInvalidConfigWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{
		{Type: "sms"},
		{Type: notifier.Slack, URL: "https://h/secret", URLFile: "/f"},
		{Type: notifier.Webhook, URL: "https://h", Secret: "c2VjcmV0"},
		{Type: notifier.Email, SMTP: "h", From: "a@b", To: []string{"c@d"}},
		{Type: notifier.Email, SMTP: "h:25", From: "a", To: []string{"c@d"}},
		{Type: notifier.Email, SMTP: "h:25", From: "a@b", To: []string{"c"}},
	} {
		config.Name = "n"
		_, err := Open([]Config{config})
		if !errors.Is(err, tenure.ErrInvalidConfig) || strings.Contains(err.Error(), "secret") && config.Type == notifier.Slack && strings.Contains(err.Error(), "/secret") {
			t.Errorf("%+v: %v", config, err)
		}
	}
	set, err := Open([]Config{{Name: "ops", Type: notifier.Slack, URL: "https://h"}, {Name: "hook", Type: notifier.Webhook, URL: "https://h"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "op", "hook:x"} {
		if _, _, err := set.Find(address); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if n, target, err := set.Find("ops:#a:b"); err != nil || n.Name() != "ops" || target != "#a:b" {
		t.Errorf("%v, %q, %v", n, target, err)
	}
}

// TestHangingReceiverEndsWithContext: a receiver that does not answer is given up when the context ends.
func TestHangingReceiverEndsWithContext(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := contextWithTimeout(t, 100*time.Millisecond)
	defer cancel()
	if err := mustOpen(t, Config{Type: notifier.Webhook, URL: server.URL}).Send(ctx, "", Batch{Alerts: []Alert{firing()}}); err == nil {
		t.Error("no error")
	}
}
