package service

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/settings"
	"github.com/exactly-one/tenure/cmd/tenure/internal/notify"
)

// service is what a node owes to the machine on which it runs: news for the
// service manager, and a configuration that is read again at SIGHUP.
type service struct {
	socket  *notify.Socket
	manager atomic.Pointer[notify.Service] // nil until the node is ready
	stop    func()                         // of reading the configuration again
	log     *slog.Logger
}

// newService begins before there is a node: waiting for a database may take long.
// It takes the manager's variables out of the environment.
func newService(flags *pflag.FlagSet, live settings.Live, log *slog.Logger) (*service, error) {
	socket, err := notify.Take(os.LookupEnv, os.Unsetenv)
	if err != nil {
		return nil, console.Usage("%w", err)
	}
	s := &service{socket: socket, log: log}
	if err := socket.Status("Waiting for the database."); err != nil {
		s.failed(err)
	}
	again := &settings.Reloader{Flags: flags, Config: settings.Of(flags), Live: live, Log: log}
	s.stop = again.OnHangup(func(reload func()) { s.manager.Load().Reload(reload) })
	return s, nil
}

func (s *service) failed(err error) { s.log.Warn("the service manager was not told", "error", err) }

// ready says that the node is ready, and from then on how it fares.
func (s *service) ready(p *Participant) {
	s.manager.Store(notify.Start(s.socket, func() notify.Health { return healthOf(p) }, s.failed))
}

// stopping says that the node is about to close.
func (s *service) stopping() { s.manager.Load().Stopping() }

// close ends what the service began, after the node was closed.
func (s *service) close() {
	s.stop()
	if err := errors.Join(s.manager.Load().Close(), s.socket.Close()); err != nil {
		s.log.Warn("the service manager's socket was not closed", "error", err)
	}
}

// healthOf is how a node fares: well while it has a session, whoever leads, also
// when it waits for others or drains.
func healthOf(p *Participant) notify.Health {
	node := p.Node
	if !node.Connected() {
		return notify.Health{Status: "The database does not answer; trying again."}
	}
	if err := p.unready(); err != nil {
		return notify.Health{Healthy: true, Status: "Stands for no role: " + console.OneLine(err) + "."}
	}
	var leads, waits []string
	for _, election := range node.Elections() {
		role := console.Flatten(election.Role().Name())
		if term := election.Term(); term != nil && term.Valid() {
			leads = append(leads, fmt.Sprintf("%s (term %d)", role, term.Number()))
		} else {
			waits = append(waits, role)
		}
	}
	return notify.Health{Healthy: true, Status: rolesText(leads, waits)}
}

// rolesText says on one line which roles a node leads and for which it waits.
func rolesText(leads, waits []string) string {
	var parts []string
	if len(leads) > 0 {
		parts = append(parts, "leads "+listText(leads))
	}
	if len(waits) > 0 {
		parts = append(parts, "stands by for "+listText(waits))
	}
	if len(parts) == 0 {
		return "Stands for no role."
	}
	text := strings.Join(parts, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// mostListed is how many roles a line names.
const mostListed = 5

func listText(names []string) string {
	slices.Sort(names)
	if more := len(names) - mostListed; more > 0 {
		names = append(names[:mostListed:mostListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
