package pgdial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// failure is an error with another text: it names each cause once, without the steps of
// the driver.
type failure struct {
	text  string
	cause error
}

func (e *failure) Error() string { return e.text }
func (e *failure) Unwrap() error { return e.cause }

// categorized is an error that also matches a category, without the category's text.
type categorized struct{ category, cause error }

func (e *categorized) Error() string   { return e.cause.Error() }
func (e *categorized) Unwrap() []error { return []error{e.category, e.cause} }

// As returns an error with the text of err. It also matches a category.
func As(category, err error) error { return &categorized{category, err} }

// Describe returns an error with the intended target of a connection, and the reason of
// its failure. It wraps err.
func Describe(config *pgx.ConnConfig, err error) error {
	return describe(target{host: config.Host, port: config.Port}, config, err)
}

// Described reports whether an error already has the text of Describe.
func Described(err error) bool {
	var described *failure
	return errors.As(err, &described)
}

func describe(host target, config *pgx.ConnConfig, err error) error {
	if err == nil {
		return nil
	}
	text := fmt.Sprintf("cannot connect to %s as %s", host.name(), config.User)
	if config.Database != "" {
		text += ", database " + config.Database
	}
	return &failure{text + ": " + reasonsText(err), err}
}

// late is an attempt over its bound.
type late struct {
	limit time.Duration
	cause error
}

func (e *late) Error() string {
	text := fmt.Sprintf("no connection within %v, which connect_timeout in the connection string can change", e.limit)
	if others := slices.DeleteFunc(leaves(e.cause), byBound); len(others) > 0 {
		text += ": " + reasonsText(errors.Join(others...))
	}
	return text
}

// byBound reports whether an attempt failed because of its bound, or began after it.
func byBound(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed)
}

func (e *late) Unwrap() error { return e.cause }

// reason is why an attempt failed, and at which address, if known.
type reason struct{ address, text string }

// reasonsText joins the different reasons of an error.
func reasonsText(err error) string {
	var (
		found     []reason
		addresses = map[string]bool{}
	)
	for _, leaf := range leaves(err) {
		r := reasonOf(leaf)
		if !slices.ContainsFunc(found, func(other reason) bool { return other.text == r.text }) {
			found = append(found, r)
			addresses[r.address] = true
		}
	}
	// A refusal of TLS is left out, unless it is the only reason: the driver also tries
	// without TLS.
	if rest := slices.DeleteFunc(slices.Clone(found), func(r reason) bool { return r.text == noTLS }); len(rest) > 0 {
		found = rest
	}
	texts := make([]string, len(found))
	for i, r := range found {
		texts[i] = r.text
		if len(found) > 1 && len(addresses) > 1 && r.address != "" {
			texts[i] = r.address + ": " + r.text
		}
	}
	return strings.Join(texts, "; ")
}

// noTLS is how the driver reports a server without TLS.
const noTLS = "tls error: server refused TLS connection"

// leaves returns the errors of the single attempts.
func leaves(err error) []error {
	switch e := err.(type) { //nolint:errorlint // each link of the chain is looked at
	case *pgconn.ConnectError:
		return leaves(e.Unwrap())
	case *decision:
		return leaves(e.error)
	case interface{ Unwrap() []error }:
		var texts []string
		var all []error
		for _, one := range e.Unwrap() {
			texts = append(texts, one.Error())
			all = append(all, leaves(one)...)
		}
		if strings.Join(texts, "\n") == err.Error() { // errors.Join, and not several causes in one text
			return all
		}
	}
	return []error{err}
}

// dialed matches the driver's text before the steps of one attempt: the address and the
// name of the host.
var dialed = regexp.MustCompile(`^(\S+) \([^()]*\): `)

func reasonOf(leaf error) reason {
	r := reason{text: leaf.Error()}
	if e, ok := leaf.(*late); ok { //nolint:errorlint // as above
		r.address = reasonOf(leaves(e.cause)[0]).address
		return r
	}
	if prefix := dialed.FindStringSubmatch(r.text); prefix != nil {
		r.address, r.text = prefix[1], r.text[len(prefix[0]):]
	}
	var network *net.OpError
	if errors.As(leaf, &network) && network.Err != nil {
		inner := network.Err
		var system *os.SyscallError
		if errors.As(inner, &system) {
			inner = system.Err
		}
		r.text = strings.Replace(r.text, network.Error(), inner.Error(), 1)
	}
	var name *net.DNSError
	if errors.As(leaf, &name) {
		r.text = strings.Replace(r.text, name.Error(), name.Err, 1)
	}
	steps := []string{"dial error: ", "server error: ", "ValidateConnect failed: "}
	var server *pgconn.PgError
	if errors.As(leaf, &server) {
		steps = append(steps, "failed SASL auth: ")
	}
	for _, step := range steps {
		r.text = strings.TrimPrefix(r.text, step)
	}
	return r
}
