package serve

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/server/dashboard"
	"github.com/exactly-one/tenure/server/internal/signon"
)

// authentication returns who may view and act. Acting needs an operator's token or
// password, or the name of an operator from a proxy.
func (c *serveCommand) authentication(server *service.HTTPServer, proxies []netip.Prefix, passwords *passwords, provider *signon.Provider) dashboard.Authentication {
	who := dashboard.Authentication{UserHeader: c.header, TrustedProxies: proxies, Required: c.login}
	if len(c.operators) > 0 {
		who.AccessOf = func(user string) dashboard.Access {
			if slices.Contains(c.operators, user) {
				return dashboard.Operator
			}
			return dashboard.Viewer
		}
	}
	if provider != nil {
		who.SignOn = provider.SignOn()
	}
	who.Password, who.HasPasswords = passwords.known, passwords.exist // a reload may add the first user
	if server.Token != nil || server.ViewerToken != nil {
		who.Token = func(token string) (user dashboard.User, ok bool) { return userOf(server, token) }
	}
	return who
}

// userOf returns the user of a token. A token in both files is a viewer's.
func userOf(server *service.HTTPServer, token string) (user dashboard.User, ok bool) {
	if server.Token != nil && server.Token.Matches(token) {
		user, ok = dashboard.User{Name: "operator", Access: dashboard.Operator}, true
	}
	if server.ViewerToken != nil && server.ViewerToken.Matches(token) {
		user, ok = dashboard.User{Name: "viewer"}, true
	}
	return user, ok
}

// openProvider returns the OpenID Connect provider of the configuration file, or nil. It
// logs a provider without an answer within some seconds: users can log in when it
// answers.
func (c *serveCommand) openProvider(ctx context.Context, file *config.File, log *slog.Logger) (*signon.Provider, error) {
	settings, ok := file.SignOn()
	if !ok {
		return nil, nil
	}
	provider, err := signon.New(signon.Config{SignOn: settings, RedirectURL: strings.TrimSuffix(c.external, "/") + "/login/callback"})
	if err != nil {
		return nil, err
	}
	if err := provider.Check(ctx); err != nil {
		log.Error("users cannot log in by OpenID Connect until the provider answers", "error", err)
	}
	return provider, nil
}
