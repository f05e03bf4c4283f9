package signon

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/server/dashboard"
)

// said is what a provider says.
type said string

func (s said) Claims(v any) error { return json.Unmarshal([]byte(s), v) }

// TestClaimsDecideTheAccess: only verified addresses and groups of the right claim count,
// and the greater access.
func TestClaimsDecideTheAccess(t *testing.T) {
	t.Parallel()
	c := Config{SignOn: config.SignOn{
		GroupsClaim: "roles", OperatorEmails: []string{"Olga@Example.com"}, OperatorGroups: []string{"sre"},
		ViewerEmails: []string{"*@example.com"}, ViewerGroups: []string{"dev"},
	}}
	for text, want := range map[string]string{
		`{"email":"olga@example.com","email_verified":true}`:                                      "olga@example.com operator",
		`{"email":"OLGA@EXAMPLE.COM","email_verified":"true"}`:                                    "olga@example.com operator",
		`{"email":"olga@example.com","email_verified":false}`:                                     "none",
		`{"email":"olga@example.com"}`:                                                            "none",
		`{"email":"vera@example.com","email_verified":true}`:                                      "vera@example.com viewer",
		`{"email":"vera@sub.example.com","email_verified":true}`:                                  "none",
		`{"email":"vera@example.com.evil.example","email_verified":true}`:                         "none",
		`{"email":"vera@evil.example@example.com","email_verified":true}`:                         "none",
		`{"email":["olga@example.com"],"email_verified":true}`:                                    "none",
		`{"roles":["dev","sre"]}`:                                                                 "sub operator",
		`{"roles":"dev"}`:                                                                         "sub viewer",
		`{"roles":[1,2]}`:                                                                         "none",
		`{"groups":["sre"]}`:                                                                      "none",
		`{"email":"vera@example.com","email_verified":true,"roles":["sre"]}`:                      "vera@example.com operator",
		`{"email":"*@example.com","email_verified":true,"preferred_username":"olga@example.com"}`: "*@example.com viewer",
	} {
		found := claims{subject: "sub"}
		if err := found.read(said(text), c.groupsClaim()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		user, err := c.userOf(found)
		got := user.Name + " " + user.Access.String()
		if errors.Is(err, dashboard.ErrNoAccess) {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestUnusableProvidersAreRefused: what could not work, or would send secrets in the
// clear, is refused.
func TestUnusableProvidersAreRefused(t *testing.T) {
	t.Parallel()
	valid := func() Config {
		return Config{SignOn: config.SignOn{Issuer: "https://id.example", ClientID: "tenure", ViewerGroups: []string{"dev"}}, RedirectURL: "https://dash.example/login/callback"}
	}
	for name, change := range map[string]func(*Config){
		"no client": func(c *Config) { c.ClientID = "" }, "nobody": func(c *Config) { c.ViewerGroups = nil },
		"no TLS": func(c *Config) { c.Issuer = "http://id.example" }, "a query": func(c *Config) { c.Issuer = "https://id.example?x" }, "no issuer": func(c *Config) { c.Issuer = "" },
		"no way back": func(c *Config) { c.RedirectURL = "/login" }, "all addresses": func(c *Config) { c.ViewerEmails = []string{"*@*"} }, "no address": func(c *Config) { c.OperatorEmails = []string{"olga"} },
		"part of a name": func(c *Config) { c.OperatorEmails = []string{"ol*@example.com"} },
	} {
		c := valid()
		change(&c)
		if _, err := New(c); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	local := valid()
	local.Issuer = "http://127.0.0.1:5556/dex"
	for _, c := range []Config{valid(), local} {
		if _, err := New(c); err != nil {
			t.Errorf("%s: %v", c.Issuer, err)
		}
	}
}
