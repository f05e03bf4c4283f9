// Command oidcprovider is a provider of OpenID Connect for tests: the example server of
// zitadel/oidc, a certified implementation, with its own users.
//
//	oidcprovider CLIENT-ID CLIENT-SECRET REDIRECT-URL
//
// It prints its issuer and serves until its standard input ends. A line of it is a user and
// the groups that the user has from then on; it prints the line when that is so. A client without a secret
// is public. All users have the password that their name is.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// account is a user with groups.
type account struct {
	storage.User

	groups []string
}

// accounts are the users by their id.
type accounts map[string]account

func newAccounts() accounts {
	all := accounts{}
	add := func(name, email string, verified bool, groups ...string) {
		all["id-"+name] = account{storage.User{
			ID: "id-" + name, Username: name, Password: name, Email: email, EmailVerified: verified,
		}, groups}
	}
	add("olga", "Olga@example.com", true, "sre", "everyone")
	add("vera", "vera@example.com", true, "everyone")
	add("stranger", "stranger@elsewhere.example", true)
	add("mallory", "olga@example.com", false) // claims another's address
	return all
}

// GetUserByID implements storage.UserStore.
func (a accounts) GetUserByID(id string) *storage.User {
	if found, ok := a[id]; ok {
		return &found.User
	}
	return nil
}

// GetUserByUsername implements storage.UserStore.
func (a accounts) GetUserByUsername(name string) *storage.User { return a.GetUserByID("id-" + name) }

// ExampleClientID implements storage.UserStore.
func (accounts) ExampleClientID() string { return storage.ServiceUserID }

// withGroups adds the groups of users to the example's storage.
type withGroups struct {
	*storage.Storage

	accounts accounts
	moved    *moves
}

// moves are the groups of users that were changed, by the id of the user.
type moves struct {
	mu     sync.Mutex
	groups map[string][]string
}

// set changes the groups of a user.
func (m *moves) set(user string, groups []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups["id-"+user] = groups
}

// of returns the groups of a user.
func (m *moves) of(id string, otherwise []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if groups, moved := m.groups[id]; moved {
		return groups
	}
	return otherwise
}

// SetUserinfoFromToken implements op.Storage.
func (s withGroups) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	if groups := s.moved.of(subject, s.accounts[subject].groups); len(groups) > 0 {
		info.AppendClaims("groups", groups)
	}
	return nil
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: oidcprovider CLIENT-ID CLIENT-SECRET REDIRECT-URL")
	}
	id, secret, back := os.Args[1], os.Args[2], os.Args[3]
	client := storage.WebClient(id, secret, back)
	if secret == "" {
		client = storage.NativeClient(id, back)
	}
	storage.RegisterClients(client)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	issuer := "http://" + listener.Addr().String()
	users, moved := newAccounts(), &moves{groups: map[string][]string{}}
	handler := exampleop.SetupServer(issuer, withGroups{storage.NewStorage(users), users, moved}, slog.New(slog.DiscardHandler), false)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	fmt.Println(issuer)
	go func() { // exits with the program
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) > 0 {
				moved.set(words[0], words[1:])
				fmt.Println(lines.Text())
			}
		}
		os.Exit(0)
	}()
	log.Fatal(server.Serve(listener))
}
