package service

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/tenuretest"
)

// parseListen reads the flags of the HTTP server.
func parseListen(t *testing.T, args ...string) *ListenFlags {
	t.Helper()
	var f ListenFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

// Each error is one clear line with exit code 2, before anything runs.
func TestListenRejectsBadInput(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	folder := t.TempDir()
	short := filepath.Join(folder, "short")
	if err := os.WriteFile(short, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(folder, "missing")
	for want, args := range map[string][]string{
		"the port is in use by another program": {"--listen", taken.Addr().String()},
		`"8080" is not an address`:              {"--listen", "8080"},
		"the token file: ":                      {"--listen", ":0", "--token-file", missing},
		"holds a token of 7 characters":         {"--listen", ":0", "--token-file", short},
		"the TLS certificate: ":                 {"--listen", ":0", "--tls-cert", missing, "--tls-key", missing},
		"--tls-cert and --tls-key must be used": {"--listen", ":0", "--tls-cert", missing},
		"--tls-key must be used":                {"--tls-key", missing},
		"the metric prefix \"1a\" is invalid":   {"--listen", ":0", "--metrics-prefix", "1a"},
		"the metric prefix \"b-\" is invalid":   {"--metrics-prefix", "b-"},
		"--token-file requires --listen":        {"--token-file", missing},
		"--tls-cert requires --listen":          {"--tls-cert", missing, "--tls-key", missing},
	} {
		server, err := parseListen(t, args...).open(t.Context(), slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("%q is accepted", args)
			server.close()
			continue
		}
		line := console.OneLine(err)
		if console.ExitCode(err) != console.ExitUsage || !strings.Contains(line, want) || strings.Contains(line, "hunter2") {
			t.Errorf("%q: exit code %d, %s; want %s", args, console.ExitCode(err), line, want)
		}
	}
}

// Without --listen nothing is served, and no other code has to check for that.
func TestNothingIsServedWithoutListen(t *testing.T) {
	t.Parallel()
	server, err := parseListen(t).open(t.Context(), slog.New(slog.DiscardHandler))
	if server != nil || err != nil {
		t.Fatalf("%v, %v", server, err)
	}
	server.attach(nil, "")
	server.Publish(EventRecord{})
	server.close()
}

// The server reports the program as alive before its node campaigns, and as
// leading after. The end of the context that opened the server does not end it.
func TestListenServesHealthBeforeLeading(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	opening, cancel := context.WithCancel(t.Context())
	server, err := parseListen(t, "--listen", ":0", "--token-file", token).open(opening, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ask := func(method, path, want string) map[string]any {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+server.listener.Addr().String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		var value map[string]any
		if err == nil {
			err = json.Unmarshal(body, &value)
		}
		if err != nil || response.Status != want {
			t.Errorf("%s %s: %s %s, %v", method, path, response.Status, body, err)
		}
		return value
	}
	ask("GET", "/healthz", "200 OK")
	ask("GET", "/readyz", "503 Service Unavailable")

	node, err := tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server.attach(&Participant{Node: node}, "")
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		t.Fatal(err)
	}
	election.OnEvent(func(event tenure.Event) { server.Publish(NewEventRecord(node, event)) })
	if err := election.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	term, err := election.WaitForLeadership(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask("GET", "/readyz", "200 OK")
	if got := ask("GET", "/leader", "200 OK"); got["role"] != "billing" || got["term"] != float64(term.Number()) || got["began_at"] == nil {
		t.Errorf("%v", got)
	}
	ask("POST", "/v1/elections/billing/step-down", "200 OK")
	if err := node.Close(context.Background()); err != nil {
		t.Error(err)
	}
	ask("GET", "/leader", "503 Service Unavailable")
	server.close()
}
