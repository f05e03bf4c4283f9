package notifiers

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
)

// The types of notifiers.
const (
	Slack        = "slack"
	PagerDuty    = "pagerduty"
	Webhook      = "webhook"
	Email        = "email"
	Alertmanager = "alertmanager"
)

// Types are all types of notifiers.
var Types = []string{Slack, PagerDuty, Webhook, Email, Alertmanager}

// Config configures a notifier. Which fields a type needs is that of the
// configuration file: a secret is given either itself or by a file.
type Config struct {
	Name, Type string
	// URL is where requests go; for PagerDuty by default its Events API.
	URL, URLFile               string
	Channel                    string // of Slack, where an address names none
	RoutingKey, RoutingKeyFile string // of PagerDuty
	Secret, SecretFile         string // of a webhook; without one its requests are not signed
	SMTP                       string // host:port; port 465 is TLS from the start
	From                       string
	To                         []string
	Username                   string
	Password, PasswordFile     string
	// PerMinute is how many messages are sent in a minute; what comes beyond
	// waits. Default 60.
	PerMinute int
	// TLS configures connections. Default the system's certificates.
	TLS *tls.Config
}

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

// transport is what differs between the types.
type transport interface {
	// send makes one attempt; target is what follows the colon of an address.
	send(ctx context.Context, target string, batch Batch) error
	// batch is how many alerts one message can carry.
	batch() int
}

// Set is all notifiers, by their names.
type Set map[string]*Notifier

// Open makes notifiers, which connect to nothing yet. An error matches
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

// Check returns the faults of a configuration, without its secrets.
func Check(config Config) error {
	_, err := open(config)
	return err
}

func open(config Config) (*Notifier, error) {
	config.PerMinute = cmp.Or(config.PerMinute, defaultPerMinute)
	n := &Notifier{config: config}
	if config.Type != Email {
		n.client = newClient(config.TLS)
	}
	url, err := newSecret(config.URL, config.URLFile)
	if err != nil {
		return nil, err
	}
	n.transport, err = newTransport(config, endpoint{name: config.Name, client: n.client, url: url})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// newTransport returns the transport of the notifier's type.
func newTransport(config Config, to endpoint) (transport, error) {
	switch config.Type {
	case Slack:
		return slack{to, config.Channel}, nil
	case Alertmanager:
		return alertmanager{to}, nil
	case PagerDuty:
		key, err := newSecret(config.RoutingKey, config.RoutingKeyFile)
		if err != nil {
			return nil, err
		}
		if config.URL == "" && config.URLFile == "" {
			to.url = secret{text: pagerDutyEvents}
		}
		return pagerDuty{to, key}, nil
	case Webhook:
		key, err := newSecret(config.Secret, config.SecretFile)
		if err != nil {
			return nil, err
		}
		if config.Secret != "" {
			if _, err := parseSigningKey(config.Secret); err != nil {
				return nil, err
			}
		}
		return webhook{to, key}, nil
	case Email:
		password, err := newSecret(config.Password, config.PasswordFile)
		if err != nil {
			return nil, err
		}
		return newEmail(config, password)
	}
	return nil, fmt.Errorf("there is no type %q", config.Type)
}

// Close closes the connections that are kept open.
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

// Find returns the notifier that an address names, and the target within it,
// which may be empty. An error matches tenure.ErrInvalidConfig.
func (s Set) Find(address string) (n *Notifier, target string, err error) {
	name, target, hasTarget := strings.Cut(address, ":")
	n = s[name]
	if n == nil {
		return nil, "", fmt.Errorf("%w: the notifier %q is not configured here; add [alerts.notifications.%s]", tenure.ErrInvalidConfig, name, name)
	}
	if hasTarget {
		if err := CheckTarget(n.config.Type, target); err != nil {
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

// CheckTarget refuses what cannot follow the colon after the name of a notifier of
// this type: for Slack it is a channel, for e-mail who gets it, and others have
// none.
func CheckTarget(kind, target string) error {
	switch kind {
	case Slack:
		return nil
	case Email:
		_, err := recipients([]string{target})
		return err
	}
	return fmt.Errorf("a notifier of type %s has no targets: leave out %q", kind, ":"+target)
}

// Name is the notifier's.
func (n *Notifier) Name() string { return n.config.Name }

// PerMinute is how many messages may be sent in a minute.
func (n *Notifier) PerMinute() int { return n.config.PerMinute }

// Batch is how many alerts one message can carry.
func (n *Notifier) Batch() int { return n.transport.batch() }

// Refresh is how often a firing alert must be sent again so that the receiver does
// not forget it; 0 for never.
func (n *Notifier) Refresh() time.Duration {
	if n.config.Type == Alertmanager {
		return alertmanagerRefresh
	}
	return 0
}

// Send makes one attempt to send a message about at most [Notifier.Batch]
// alerts, bounded by the context and 10 s. An error of the type [RetryAfterError]
// says when to try again, and one of the type [RefusedError] that another message
// may be accepted. After an error the message may have arrived
// nevertheless.
func (n *Notifier) Send(ctx context.Context, target string, batch Batch) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := n.transport.send(ctx, target, batch.prepared()); err != nil {
		return fmt.Errorf("the notifier %s: %w", n.config.Name, err)
	}
	return nil
}
