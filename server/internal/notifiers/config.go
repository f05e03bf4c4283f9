package notifiers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/notifier"
)

// Config configures a notifier.
type Config = notifier.Config

const (
	defaultPerMinute = 60

	// attemptTimeout bounds one attempt, from the connection to the last byte.
	attemptTimeout = 10 * time.Second
)

// Notifier sends alerts to one place. It is safe for concurrent use.
type Notifier struct {
	config    Config
	transport transport
	client    *http.Client // nil for e-mail
}

// transport is the part of a notifier specific to its type.
type transport interface {
	// send makes one attempt; target is the text after the colon of an address.
	send(ctx context.Context, target string, batch Batch) error
	// batch is how many alerts one message can carry.
	batch() int
}

// Set is all notifiers, by their names.
type Set map[string]*Notifier

// Open makes notifiers without connecting to anything. An error matches
// tenure.ErrInvalidConfig.
func Open(configs []Config) (Set, error) {
	set := Set{}
	for _, config := range configs {
		n, err := open(config)
		if err != nil {
			return nil, fmt.Errorf("%w: the notifier %s: %w", tenure.ErrInvalidConfig, config.Name, err)
		}
		set[config.Name] = n
	}
	return set, nil
}

func open(config Config) (*Notifier, error) {
	if err := notifier.Check(config); err != nil {
		return nil, err
	}
	config.PerMinute = cmp.Or(config.PerMinute, defaultPerMinute)
	n := &Notifier{config: config}
	if config.Type != notifier.Email {
		n.client = newClient(config.TLS)
	}
	var err error
	n.transport, err = newTransport(config, endpoint{name: config.Name, client: n.client, url: secret{config.URL, config.URLFile}})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// newTransport returns the transport of the notifier's type.
func newTransport(config Config, to endpoint) (transport, error) {
	switch config.Type {
	case notifier.Slack:
		return slack{to, config.Channel}, nil
	case notifier.Alertmanager:
		return alertmanager{to}, nil
	case notifier.PagerDuty:
		key := secret{config.RoutingKey, config.RoutingKeyFile}
		if config.URL == "" && config.URLFile == "" {
			to.url = secret{text: pagerDutyEvents}
		}
		return pagerDuty{to, key}, nil
	case notifier.Webhook:
		key := secret{config.Secret, config.SecretFile}
		return webhook{to, key}, nil
	case notifier.Email:
		password := secret{config.Password, config.PasswordFile}
		return newEmail(config, password)
	}
	return nil, fmt.Errorf("there is no type %q", config.Type)
}

// Close closes the open connections.
func (s Set) Close() {
	for _, n := range s {
		if n.client != nil {
			n.client.CloseIdleConnections()
		}
	}
}

// Names are the names of all notifiers, sorted.
func (s Set) Names() []string {
	var names []string
	for name := range s {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Find returns the notifier of an address, and the target within it, possibly empty. An
// error matches tenure.ErrInvalidConfig.
func (s Set) Find(address string) (n *Notifier, target string, err error) {
	name, target, hasTarget := strings.Cut(address, ":")
	n = s[name]
	if n == nil {
		return nil, "", fmt.Errorf("%w: the notifier %q is not configured here; add [alerts.notifications.%s]", tenure.ErrInvalidConfig, name, name)
	}
	if hasTarget {
		if err := notifier.CheckTarget(n.config.Type, target); err != nil {
			return nil, "", fmt.Errorf("%w: %q: %w", tenure.ErrInvalidConfig, address, err)
		}
	}
	return n, target, nil
}

// NameOf is the name of the notifier in an address.
func NameOf(address string) string {
	name, _, _ := strings.Cut(address, ":")
	return name
}

// Name is the notifier's.
func (n *Notifier) Name() string { return n.config.Name }

// PerMinute is how many messages may be sent in a minute.
func (n *Notifier) PerMinute() int { return n.config.PerMinute }

// Batch is how many alerts one message can carry.
func (n *Notifier) Batch() int { return n.transport.batch() }

// Refresh is how often a firing alert must be sent again, before the receiver forgets it;
// 0 for never.
func (n *Notifier) Refresh() time.Duration {
	if n.config.Type == notifier.Alertmanager {
		return alertmanagerRefresh
	}
	return 0
}

// Send makes one attempt to send a message about at most [Notifier.Batch] alerts, bounded
// by the context and 10 s. A [RetryAfterError] contains when to try again. After a
// [RefusedError] another message may be accepted. After an error the message may have
// arrived nevertheless.
func (n *Notifier) Send(ctx context.Context, target string, batch Batch) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := n.transport.send(ctx, target, batch.prepared()); err != nil {
		return fmt.Errorf("the notifier %s: %w", n.config.Name, err)
	}
	return nil
}
