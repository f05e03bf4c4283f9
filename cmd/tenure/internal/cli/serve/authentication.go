package serve

import (
	"net/netip"
	"slices"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/service"
	"github.com/exactly-one/tenure/dashboard"
)

// authentication returns who may view and act. Acting needs an operator's token or
// password, or a proxy that names an operator.
func (c *serveCommand) authentication(server *service.HTTPServer, proxies []netip.Prefix, passwords *passwords) dashboard.Authentication {
	who := dashboard.Authentication{UserHeader: c.header, TrustedProxies: proxies, Required: c.login}
	if len(c.operators) > 0 {
		who.AccessOf = func(user string) dashboard.Access {
			if slices.Contains(c.operators, user) {
				return dashboard.Operator
			}
			return dashboard.Viewer
		}
	}
	if c.passwords != "" || len(c.users) > 0 {
		who.Password = passwords.known
	}
	if server.Token != nil || server.ViewerToken != nil {
		who.Token = func(token string) (user dashboard.User, ok bool) { return userOf(server, token) }
	}
	return who
}

// userOf returns the user of a token. A token that is in both files is a viewer's.
func userOf(server *service.HTTPServer, token string) (user dashboard.User, ok bool) {
	if server.Token != nil && server.Token.Matches(token) {
		user, ok = dashboard.User{Name: "operator", Access: dashboard.Operator}, true
	}
	if server.ViewerToken != nil && server.ViewerToken.Matches(token) {
		user, ok = dashboard.User{Name: "viewer"}, true
	}
	return user, ok
}
