package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/httpguard"
)

// described is the API's description, which is valid.
var described = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(description)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

// templateOf returns the path of the description that a path is one of.
func templateOf(doc *openapi3.T, path string) (string, bool) {
	if doc.Paths.Value(path) != nil {
		return path, true
	}
	for template := range doc.Paths.Map() {
		before, rest, ok := strings.Cut(template, "{")
		_, after, _ := strings.Cut(rest, "}")
		if ok && len(path) > len(before)+len(after) && strings.HasPrefix(path, before) && strings.HasSuffix(path, after) &&
			!strings.Contains(path[len(before):len(path)-len(after)], "/") {
			return template, true
		}
	}
	return "", false
}

// checkDescribed checks an answer against the description, except an answer that
// the path or method does not exist.
func checkDescribed(t *testing.T, r *http.Request, seen reply) {
	t.Helper()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	template, ok := templateOf(doc, r.URL.EscapedPath())
	if !ok {
		if seen.status != http.StatusNotFound {
			t.Errorf("%s %s is not described and answered with %d", r.Method, r.URL, seen.status)
		}
		return
	}
	item := doc.Paths.Value(template)
	operation := item.GetOperation(strings.Replace(r.Method, http.MethodHead, http.MethodGet, 1))
	if operation == nil {
		if seen.status != http.StatusMethodNotAllowed {
			t.Errorf("%s %s is not described and answered with %d", r.Method, r.URL, seen.status)
		}
		return
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true}
	if strings.HasPrefix(seen.header.Get("Content-Type"), "text/") {
		options.ExcludeResponseBody = true // its events are checked one by one
	}
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r, Route: &routers.Route{Spec: doc, Path: template, PathItem: item, Method: r.Method, Operation: operation},
		},
		Status: seen.status, Header: seen.header, Options: options, Body: io.NopCloser(strings.NewReader(seen.body)),
	})
	if err != nil {
		t.Errorf("%s %s answered with %d %q, which is not as described: %v", r.Method, r.URL, seen.status, seen.body, err)
	}
}

// checkSchema checks a value against a schema of the description.
func checkSchema(t *testing.T, name, text string) {
	t.Helper()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if err := doc.Components.Schemas[name].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("%q is not a %s: %v", text, name, err)
	}
}

// coverage is which statuses of which paths were answered.
type coverage map[string]bool

// seen calls a handler, and notes the status.
func (c coverage) seen(t *testing.T, h *Handler, method, target, body string, header ...string) {
	t.Helper()
	r := call(t, h, method, target, body, header...)
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	path, _, _ := strings.Cut(target, "?")
	template, _ := templateOf(doc, path)
	c[fmt.Sprintf("%s %s %d", method, template, r.status)] = true
}

// TestEveryDescribedStatusIsAnswered: every status of every path that is described is really answered,
// in the described form.
func TestEveryDescribedStatusIsAnswered(t *testing.T) {
	t.Parallel()
	answered := coverage{}
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		on := newHandler(t, Config{Token: newToken(t), Metrics: http.NotFoundHandler()})
		seen := func(h *Handler, method, target, body string, header ...string) {
			t.Helper()
			answered.seen(t, h, method, target, body, header...)
		}
		const stepDown, guards = "/v1/elections/billing/step-down", "/v1/roles/billing/guards"
		bearer := []string{"Authorization", "Bearer " + secret, "Content-Type", "application/json"}
		nodes := []string{"/v1/cluster", "/v1/nodes", "/v1/nodes/one"}
		for _, target := range append(nodes, "/healthz", "/readyz", "/leader", "/v1/elections", "/v1/leaders", "/v1/leaders/billing") {
			seen(on, "GET", target, "") // no node yet
		}
		seen(on, "POST", stepDown, "", bearer...)
		seen(on, "POST", guards, piece, bearer...)
		node := campaignWith(t, db, tenure.Config{Name: "one", Settle: 5 * time.Second}, on, "billing", "reports")
		elected(t, node, "billing")
		for _, target := range []string{
			"/readyz", "/leader?role=billing", "/leader", "/leader?role=none", "/v1/elections", "/v1/leaders", "/v1/leaders/billing",
			"/v1/leaders/none", "/v1/leaders/%00", "/v1/openapi.json", "/metrics",
		} {
			seen(on, "GET", target, "")
		}
		with := newHandler(t, Config{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		})})
		seen(with, "GET", "/metrics", "")

		for _, stream := range []string{"/v1/events", "/v1/nodes/watch"} {
			seen(on, "GET", stream, "", "Last-Event-ID", "x")
			var releases []func()
			for range eachStreams {
				release, _ := on.streams.Take("192.0.2.1") // of the request
				releases = append(releases, release)
			}
			seen(on, "GET", stream, "")
			for _, release := range releases {
				release()
			}
			with.feed.Close() // so that the streams end
			with.nodes.Close()
			seen(with, "GET", stream, "")
		}

		campaign(t, db, "twin", nil)
		campaign(t, db, "twin", nil)
		without := newHandler(t, Config{Token: newToken(t)})
		campaign(t, struct{ tenure.Backend }{db}, "alone", without)
		for _, target := range append(nodes, "/v1/nodes/none", "/v1/nodes/twin") {
			seen(on, "GET", target, "")
			seen(without, "GET", target, "")
		}
		const drain, undrain = "/v1/nodes/one/drain", "/v1/nodes/one/undrain"
		for _, target := range []string{stepDown, guards, drain, undrain} {
			seen(with, "POST", target, "")
			seen(on, "POST", target, "")
			seen(on, "POST", target, "{", bearer...)
			seen(on, "POST", target, strings.Repeat(" ", maxBody+1), bearer...)
			seen(on, "POST", target, "{}", bearer[:2]...)
		}
		for _, action := range []string{"drain", "undrain"} {
			for _, name := range []string{"none", "twin"} {
				seen(on, "POST", "/v1/nodes/"+name+"/"+action, "", bearer...)
			}
			seen(without, "POST", "/v1/nodes/one/"+action, "", bearer...)
		}
		seen(on, "POST", "/v1/elections/none/step-down", "", bearer...)
		seen(on, "POST", "/v1/roles/none/guards", piece, bearer...)
		for _, body := range []string{piece, `{"at_most_seconds":60}`, `{"at_most_seconds":1,"term":1}`} {
			seen(on, "POST", guards, body, bearer...)
		}
		seen(on, "POST", stepDown, `{"to":"one"}`, bearer...)
		guard, err := elected(t, node, "billing").Guard()
		if err != nil {
			t.Fatal(err)
		}
		seen(on, "POST", stepDown, "", bearer...)
		guard.Done()
		elected(t, node, "billing")
		seen(on, "POST", stepDown, "", bearer...)
		seen(on, "POST", undrain, "", bearer...)
		seen(on, "POST", drain, "", bearer...)
		guessing := newHandler(t, Config{Token: newToken(t)})
		for range httpguard.MaxAttempts {
			call(t, guessing, "POST", stepDown, "", "Authorization", "Bearer wrong").want(t, http.StatusUnauthorized)
		}
		for _, target := range []string{stepDown, guards, drain, undrain} {
			seen(guessing, "POST", target, "", bearer...)
		}
		db.failWith(errors.New("down"))
		seen(on, "POST", stepDown, `{"to":"two"}`, bearer...)
		seen(on, "POST", drain, "", bearer...)
		seen(on, "POST", undrain, "", bearer...)
		db.failWith(nil)
	})
	coverSchedules(t, answered)
	coverProcessors(t, answered)
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for template, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				if _, err := strconv.Atoi(status); err != nil {
					t.Errorf("%s %s: a status %q", method, template, status)
				}
				if name := method + " " + template + " " + status; !answered[name] {
					t.Errorf("%s is described but was not answered", name)
				}
			}
		}
	}
}

// TestDescriptionListsStatesAndEvents: the states and kinds of events are all described.
func TestDescriptionListsStatesAndEvents(t *testing.T) {
	t.Parallel()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	states := doc.Components.Schemas["Election"].Value.Properties["state"].Value.Enum
	for _, state := range []tenure.State{
		tenure.Stopped, tenure.Follower, tenure.Acquiring, tenure.Leading, tenure.Reconnecting, tenure.Releasing,
	} {
		found := false
		for _, described := range states {
			found = found || described == state.String()
		}
		if !found {
			t.Errorf("the state %v is not described", state)
		}
	}
}
