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

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/notify"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// service connects a node to its machine: it reports to the service manager and
// rereads the configuration after SIGHUP.
type service struct {
	socket  *notify.Socket
	manager atomic.Pointer[notify.Service] // nil until the node is ready
	stop    func()                         // stops rereading the configuration
	log     *slog.Logger
}

// newService starts before there is a node, since waiting for a database can
// take long. It removes the manager's variables from the environment.
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

func (s *service) failed(err error) { s.log.Warn("notifying the service manager failed", "error", err) }

// ready reports the node as ready, and from then on its health.
func (s *service) ready(p *Participant) {
	s.manager.Store(notify.Start(s.socket, func() notify.Health { return healthOf(p) }, s.failed))
}

// stopping reports the coming end of the node.
func (s *service) stopping() { s.manager.Load().Stopping() }

// close ends the service after the node was closed.
func (s *service) close() {
	s.stop()
	if err := errors.Join(s.manager.Load().Close(), s.socket.Close()); err != nil {
		s.log.Warn("closing the service manager's socket failed", "error", err)
	}
}

// healthOf returns a node's health: it is healthy while it has a session,
// whichever node leads, also while it waits for other nodes or drains.
func healthOf(p *Participant) notify.Health {
	node := p.Node
	if !node.Connected() {
		return notify.Health{Status: "The database does not respond; retrying."}
	}
	if err := p.unready(); err != nil {
		return notify.Health{Healthy: true, Status: "Does not campaign: " + console.OneLine(err) + "."}
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

// rolesText lists on one line the led and the awaited roles of a node.
func rolesText(leads, waits []string) string {
	var parts []string
	if len(leads) > 0 {
		parts = append(parts, "leads "+listText(leads))
	}
	if len(waits) > 0 {
		parts = append(parts, "standby for "+listText(waits))
	}
	if len(parts) == 0 {
		return "Campaigns for no role."
	}
	text := strings.Join(parts, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// maxListed is how many roles a line lists.
const maxListed = 5

func listText(names []string) string {
	slices.Sort(names)
	if more := len(names) - maxListed; more > 0 {
		names = append(names[:maxListed:maxListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
