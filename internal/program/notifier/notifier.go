// Package notifier describes the notifiers of a configuration file, and checks them. The
// server makes them and sends with them.
package notifier

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strings"
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

// Config configures a notifier. The configuration file defines the required fields of
// each type: a secret is given either itself or by a file.
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
	// PerMinute bounds the messages sent in a minute; further ones wait. Default 60.
	PerMinute int
	// TLS configures connections. Default the system's certificates.
	TLS *tls.Config
}

// Check returns the faults of a configuration, without its secrets.
func Check(config Config) error {
	for _, given := range [][2]string{
		{config.URL, config.URLFile}, {config.RoutingKey, config.RoutingKeyFile}, {config.Secret, config.SecretFile}, {config.Password, config.PasswordFile},
	} {
		if given[0] != "" && given[1] != "" {
			return errors.New("a secret is given both itself and by a file: leave one out")
		}
	}
	switch config.Type {
	case Slack, Alertmanager, PagerDuty:
		return nil
	case Webhook:
		if config.Secret == "" {
			return nil
		}
		_, err := ParseSigningKey(config.Secret)
		return err
	case Email:
		if _, _, _, err := EmailAddresses(config); err != nil {
			return err
		}
		_, err := Recipients(config.To)
		return err
	}
	return fmt.Errorf("there is no type %q", config.Type)
}

// CheckTarget checks the text after the colon behind the name of a notifier of this type:
// for Slack it is a channel, for e-mail the recipients, and others have none.
func CheckTarget(kind, target string) error {
	switch kind {
	case Slack:
		return nil
	case Email:
		_, err := Recipients([]string{target})
		return err
	}
	return fmt.Errorf("a notifier of type %s has no targets: leave out %q", kind, ":"+target)
}

// The bounds of a signing key, in bytes, and the mark before its text.
const (
	minSigningKey    = 24
	maxSigningKey    = 64
	signingKeyPrefix = "whsec_"
)

// ParseSigningKey reads a key; the error does not contain it.
func ParseSigningKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), signingKeyPrefix))
	if err != nil || len(key) < minSigningKey || len(key) > maxSigningKey {
		return nil, errors.New("its secret must be the base64 of 24 to 64 random bytes; create one with: openssl rand -base64 32")
	}
	return key, nil
}

// EmailAddresses returns the mail server's host and port, and the sender.
func EmailAddresses(config Config) (host, port string, from *mail.Address, err error) {
	host, port, err = net.SplitHostPort(config.SMTP)
	if err != nil {
		return "", "", nil, fmt.Errorf("smtp is %q, which is no address like mail.example.com:587", config.SMTP)
	}
	from, err = mail.ParseAddress(config.From)
	if err != nil {
		return "", "", nil, fmt.Errorf("from is %q, which is no address like tenure@example.com", config.From)
	}
	return host, port, from, nil
}

// Recipients reads the addresses of an e-mail.
func Recipients(texts []string) ([]*mail.Address, error) {
	var all []*mail.Address
	for _, text := range texts {
		address, err := mail.ParseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no address like oncall@example.com", text)
		}
		all = append(all, address)
	}
	return all, nil
}

// CutPassword reports whether a URL has a password and another @ behind its host: then the
// password is probably not escaped, and the host is a part of it.
func CutPassword(address *url.URL) bool {
	_, hasPassword := address.User.Password()
	behind := *address
	behind.User = nil
	return hasPassword && strings.Contains(behind.String(), "@")
}
