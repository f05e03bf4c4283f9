package signon

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/server/dashboard"
)

// Config configures a [Provider]. Issuer, ClientID and RedirectURL must be set, and at
// least one list of users.
type Config struct {
	config.SignOn

	RedirectURL string // where the provider sends browsers back
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
	if err := config.CheckIssuer(c.Issuer); err != nil {
		return invalid("the issuer %q: %v", c.Issuer, err)
	}
	if back, err := url.Parse(c.RedirectURL); err != nil || back.Host == "" || back.Fragment != "" {
		return invalid("%q is no address to which the provider could send browsers back", c.RedirectURL)
	}
	for _, email := range slices.Concat(c.OperatorEmails, c.ViewerEmails) {
		if err := config.CheckEmail(email); err != nil {
			return invalid("%v", err)
		}
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
