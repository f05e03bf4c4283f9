package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// doors are the commands to which other processes can connect, with the flag that opens
// the door and the test of who may do what there.
var doors = map[string]string{
	"tenure run --listen":      "TestEveryRouteOfCommandsAsEverybody",
	"tenure serve --listen":    "TestEveryRouteOfCommandsAsEverybody",
	"tenure cron run --listen": "TestEveryRouteOfCommandsAsEverybody",
	"tenure proxy --listen":    "TestEveryRequestThroughProxyAsEverybody and TestEveryConnectionThroughProxyAsEverybody",
	"tenure agent --socket":    "TestEveryCallAsEverybody of package agent",

	"tenure config show --listen": "it prints the setting and does not listen",
}

// A command that opens a door without a row fails: decide who may do what there.
func TestEveryCommandWithADoorHasARow(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, flag := range []string{"listen", "socket"} {
			if c.Flags().Lookup(flag) != nil {
				found[c.CommandPath()+" --"+flag] = true
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(wholeTree())
	for door := range found {
		if doors[door] == "" {
			t.Errorf("%s is in no row: assert who may do what there, and add it", door)
		}
	}
	for door := range doors {
		if !found[door] {
			t.Errorf("the row %s is of no command", door)
		}
	}
}

// house is a command that serves HTTP, with the tokens of its callers.
type house struct {
	*testing.T

	base             string
	login            bool
	operator, viewer string        // files
	client           *http.Client  // each connection has another address
	routes           [][2]string   // method and path
	needs            []string      // what each route needs: "nothing", "view", "token" or "act"
	sources          *atomic.Int32 // addresses so far
}

const operatorsToken, viewersToken, nextToken = "the-token-of-operators", "the-token-of-viewers", "the-next-token-of-all"

func newHouse(t *testing.T, login bool, args []string) *house {
	t.Helper()
	folder := t.TempDir()
	h := &house{T: t, login: login, operator: filepath.Join(folder, "operator"), viewer: filepath.Join(folder, "viewer"), sources: new(atomic.Int32)}
	h.setTokens(operatorsToken, viewersToken)
	args = append(args, "--listen", ":0", "--log-level", "info", "--token-file", h.operator)
	if login {
		args = append(args, "--login-required", "--viewer-token-file", h.viewer)
	}
	h.base = served(launch(t, args...))
	transport := &http.Transport{DisableKeepAlives: true}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		n := h.sources.Add(1) // so that no caller is refused for the guesses of another
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}}
		return dialer.DialContext(ctx, network, address)
	}
	h.client = &http.Client{Transport: transport}
	eventually(t, "the node is ready", func() bool { return h.statusOf([2]string{"GET", "/readyz"}, "") == http.StatusOK })
	h.readRoutes()
	return h
}

func (h *house) setTokens(operators, viewers string) {
	h.Helper()
	for file, token := range map[string]string{h.operator: operators, h.viewer: viewers} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			h.Fatal(err)
		}
	}
}

// answerTo sends a request and returns the answer as soon as it has begun.
func (h *house) answerTo(route [2]string, token string) *http.Response {
	h.Helper()
	request, err := http.NewRequestWithContext(h.Context(), route[0], h.base+route[1], http.NoBody)
	if err != nil {
		h.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := h.client.Do(request)
	if err != nil {
		h.Fatal(err)
	}
	return answer
}

func (h *house) statusOf(route [2]string, token string) int {
	h.Helper()
	answer := h.answerTo(route, token)
	defer answer.Body.Close()
	return answer.StatusCode
}

// readRoutes reads the routes and what they need from the description that the command
// serves. It says what callers of all commands need; with a login, reading needs a token.
func (h *house) readRoutes() {
	h.Helper()
	answer := h.answerTo([2]string{"GET", "/v1/openapi.json"}, operatorsToken)
	defer answer.Body.Close()
	var description struct {
		Paths map[string]map[string]struct{ Security []any }
	}
	if err := json.NewDecoder(answer.Body).Decode(&description); err != nil {
		h.Fatal(err)
	}
	for path, methods := range description.Paths {
		for method, operation := range methods {
			needs := "act"
			switch {
			case slices.Contains([]string{"/healthz", "/readyz", "/leader"}, path), len(operation.Security) == 0 && !h.login:
				needs = "nothing"
			case len(operation.Security) == 0:
				needs = "view"
			case method == "get":
				needs = "token"
			}
			h.routes = append(h.routes, [2]string{strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path)})
			h.needs = append(h.needs, needs)
		}
	}
	if len(h.routes) < 30 {
		h.Fatalf("the command describes %d routes, want all", len(h.routes))
	}
}

// requestAll requests each route with a token that lets its owner do what may says.
func (h *house) requestAll(who, token, may string) {
	h.Helper()
	ranks := map[string]int{"nothing": 0, "view": 1, "token": 1, "act": 2}
	for i, route := range h.routes {
		want := 0 // not refused
		switch {
		case ranks[may] >= ranks[h.needs[i]]:
		case may == "view":
			want = http.StatusForbidden
		default:
			want = http.StatusUnauthorized
		}
		got := h.statusOf(route, token)
		refused := slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusMisdirectedRequest}, got)
		if want != got && (want != 0 || refused) {
			h.Errorf("%s: %v is answered with %d; the row says %d (0: not refused)", who, route, got, want)
		}
	}
}

// Every route of the commands that serve HTTP answers each kind of caller as the
// description of the routes says, also once the token of the caller is revoked. The
// routes of the page have their table in package dashboard.
func TestEveryRouteOfCommandsAsEverybody(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, 0)
	jobs := place.schedules(t, `name = "never"`+"\n"+never+"\n"+`command = "true"`)
	for name, row := range map[string]struct {
		args  []string
		login bool
	}{
		"run":                {args: place.with("run", "--role", "billing")},
		"serve":              {args: place.with("serve")},
		"cron run":           {args: []string{"cron", "run", "--config", jobs, "--role", "jobs"}},
		"serve with a login": {args: place.with("serve"), login: true},
	} {
		t.Run(name, func(t *testing.T) {
			if row.login { // its streams are checked every 5 s
				pgtest.Long(t)
			}
			t.Parallel()
			h := newHouse(t, row.login, row.args)
			h.requestAll("no token", "", "nothing")
			h.requestAll("a forged token", "forged-token-of-16-bytes", "nothing")
			h.requestAll("an operator", operatorsToken, "act")
			callers := []string{operatorsToken}
			if row.login {
				h.requestAll("a viewer", viewersToken, "view")
				callers = append(callers, viewersToken)
			}
			streams := map[string]*http.Response{}
			for _, token := range callers {
				for _, path := range []string{"/v1/events", "/v1/nodes/watch"} {
					stream := h.answerTo([2]string{"GET", path}, token)
					t.Cleanup(func() { stream.Body.Close() })
					streams[path+" with "+token] = stream
				}
			}
			h.setTokens(nextToken, nextToken)
			act := [2]string{"POST", "/v1/elections/x/step-down"}
			eventually(t, "the token is revoked", func() bool { return h.statusOf(act, operatorsToken) == http.StatusUnauthorized })
			for _, token := range callers {
				h.requestAll("a revoked token", token, "nothing")
			}
			if row.login { // otherwise reading needs no token
				awaitEnds(t, streams)
			}
		})
	}
}

// awaitEnds waits until streams have ended, for at most a minute.
func awaitEnds(t *testing.T, streams map[string]*http.Response) {
	t.Helper()
	ends := make(chan string)
	for name, stream := range streams {
		go func() { // exits when the stream ends, or with the test
			_, _ = io.Copy(io.Discard, stream.Body)
			ends <- name
		}()
	}
	limit := time.After(time.Minute)
	for range len(streams) {
		select {
		case name := <-ends:
			delete(streams, name)
		case <-limit:
			t.Fatalf("a minute after the tokens were revoked, these streams are open: %v", streams)
		}
	}
}
