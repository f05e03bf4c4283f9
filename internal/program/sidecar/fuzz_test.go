package sidecar

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{":8080", "127.0.0.1:0", "[::1]:80", "8080", "", ":", "a:b:c", "[fe80::1%25x]:1", "host:99999", "\x00:1", "é:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := ParseAddress(text)
		if err != nil {
			return
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil || host == "" {
			t.Errorf("%q was read as %q: %v", text, address, err)
		}
		if again, err := ParseAddress(address); again != address || err != nil {
			t.Errorf("%q was read as %q, and that as %q: %v", text, address, again, err)
		}
		if written, _, _ := strings.Cut(text, ":"); written == "" && !IsLoopback(address) {
			t.Errorf("%q is bound to %q", text, address)
		}
	})
}

func FuzzDecodeStepDown(f *testing.F) {
	for _, seed := range []string{`{}`, `{"to":"x"}`, `null`, `[]`, `{"to":null}`, `{"to":"a","to":"b"}`, `{"TO":"x"}`, `{}{}`, `{"to":"` + "\xff" + `"}`, `{"x":1}`, strings.Repeat("[", 4000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		body, ok := decodeBody[stepDownBody](text)
		if !ok && body != (stepDownBody{}) {
			t.Errorf("%q is %+v, and refused", text, body)
		}
		if ok && !utf8.ValidString(body.To) {
			t.Errorf("%q is %+v", text, body)
		}
	})
}

func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"Bearer " + secret, "bearer  x", "Bearer", "Basic eDp5", "Bearer a b", "Bearer é", "Bearer \x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, ok := bearer(header)
		if ok && (!strings.HasSuffix(header, token) || token == "" || strings.ContainsFunc(token, unfitForToken)) {
			t.Errorf("%q brings %q", header, token)
		}
		if !ok && token != "" {
			t.Errorf("%q is refused but brings %q", header, token)
		}
	})
}

// FuzzRole: any role name reaches the handler as it was written, and nothing but
// the API's own answers comes back.
func FuzzRole(f *testing.F) {
	for _, seed := range []string{"billing", "a/b", "..", ".", "%2F", "%", "日本", "\x00", "\xff", "", strings.Repeat("x", 300), "a?b#c", "key:1:2", " ", "/", "//"} {
		f.Add(seed)
	}
	name := filepath.Join(f.TempDir(), "token")
	if err := os.WriteFile(name, []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	token, err := OpenToken(name, silent)
	if err != nil {
		f.Fatal(err)
	}
	h := New(Config{Logger: silent, Token: token})
	f.Cleanup(h.Close)
	node, err := tenure.Open(f.Context(), tenuretest.NewDatabase(), tenure.Config{Logger: silent})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = node.Close(f.Context()) }) // without waiting: its context has ended
	h.Attach(node)
	f.Fuzz(func(t *testing.T, role string) {
		escaped := strings.ReplaceAll(url.PathEscape(role), ".", "%2E")
		for target, want := range map[string]string{
			"/v1/leaders/" + escaped:                  codeNoLeader,
			"/leader?role=" + url.QueryEscape(role):   codeUnknownRole,
			"/v1/elections/" + escaped + "/step-down": codeUnknownRole,
		} {
			status := http.StatusNotFound
			if tenure.NamedRole(role).Validate() != nil {
				want, status = codeInvalidRole, http.StatusBadRequest
			}
			if role == "" && strings.HasPrefix(target, "/v1") {
				want, status = codeNotFound, http.StatusNotFound
			}
			method := http.MethodGet
			if strings.HasSuffix(target, "/step-down") {
				method = http.MethodPost
			}
			r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+secret)
			serve(t, h, r).refused(t, status, want)
		}
	})
}
