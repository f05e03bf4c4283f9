package signon

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dashboard"
	"github.com/exactly-one/tenure/internal/httpguard"
)

// Config configures a [Provider]. Issuer, ClientID and RedirectURL must be set, and at
// least one list of users.
type Config struct {
	Issuer     string
	ClientID   string
	SecretFile string // the client's secret; empty for a public client

	RedirectURL string   // where the provider sends browsers back
	Scopes      []string // in addition to openid, email and profile
	GroupsClaim string   // default groups

	// Who has which access: users by verified e-mail address, or *@DOMAIN, and groups.
	// An operator can also be a viewer.
	OperatorEmails, OperatorGroups []string
	ViewerEmails, ViewerGroups     []string
}

func (c Config) validate() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.ClientID == "":
		return invalid("the OpenID Connect client has no id")
	case len(c.OperatorEmails)+len(c.OperatorGroups)+len(c.ViewerEmails)+len(c.ViewerGroups) == 0:
		return invalid("no e-mail address and no group has access by OpenID Connect: no user could log in")
	}
	if err := CheckIssuer(c.Issuer); err != nil {
		return invalid("the issuer %q: %v", c.Issuer, err)
	}
	if back, err := url.Parse(c.RedirectURL); err != nil || back.Host == "" || back.Fragment != "" {
		return invalid("%q is no address to which the provider could send browsers back", c.RedirectURL)
	}
	for _, email := range slices.Concat(c.OperatorEmails, c.ViewerEmails) {
		if err := CheckEmail(email); err != nil {
			return invalid("%v", err)
		}
	}
	return nil
}

// CheckIssuer checks the address of a provider.
func CheckIssuer(text string) error {
	issuer, err := url.Parse(text)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil:
		return fmt.Errorf("it must be a URL like https://id.example.com")
	case issuer.Scheme == "https", issuer.Scheme == "http" && httpguard.IsLoopbackName(issuer.Host):
		return nil
	default:
		return fmt.Errorf("it must begin with https://, unless it is on this machine")
	}
}

// CheckEmail checks an e-mail address, or *@DOMAIN for all of a domain.
func CheckEmail(text string) error {
	name, domain, ok := strings.Cut(text, "@")
	if !ok || name == "" || domain == "" || strings.ContainsAny(domain, "@* ") || strings.Contains(name, "*") && name != "*" {
		return fmt.Errorf("%q is not an e-mail address or *@DOMAIN", text)
	}
	return nil
}

func (c Config) groupsClaim() string {
	if c.GroupsClaim == "" {
		return "groups"
	}
	return c.GroupsClaim
}

// userOf returns the user whom claims are about. An error matches dashboard.ErrNoAccess.
func (c Config) userOf(found claims) (dashboard.User, error) {
	user := dashboard.User{Name: found.subject}
	if found.email != "" {
		user.Name = found.email
	}
	switch {
	case found.matches(c.OperatorEmails, c.OperatorGroups):
		user.Access = dashboard.Operator
	case !found.matches(c.ViewerEmails, c.ViewerGroups):
		return user, dashboard.ErrNoAccess
	}
	return user, nil
}
