package notifiers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/program/notifier"
)

// email sends a mail by SMTP: with TLS from the start on port 465, else with STARTTLS. A
// server with neither is refused, unless it is on this machine.
type email struct {
	host, port string
	from       *mail.Address
	to         []*mail.Address
	username   string
	password   secret
	tls        *tls.Config

	mu     sync.Mutex
	partly map[uuid.UUID]*partly // by the alert
}

// partly is an alert whose mail only some recipients have got so far.
type partly struct {
	at      time.Time // of the last attempt
	settled []string  // the recipients that have got it, or are refused for good
}

// keepPartly is longer than a mail is tried.
const keepPartly = 25 * time.Hour

func newEmail(config Config, password secret) (*email, error) {
	host, port, from, err := notifier.EmailAddresses(config)
	if err != nil {
		return nil, err
	}
	e := &email{host: host, port: port, from: from, username: config.Username, password: password, tls: config.TLS.Clone(), partly: map[uuid.UUID]*partly{}}
	if e.tls == nil {
		e.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	e.tls.ServerName = cmp.Or(e.tls.ServerName, host)
	e.to, err = notifier.Recipients(config.To)
	return e, err
}

func (*email) batch() int { return 100 }

func (e *email) send(ctx context.Context, target string, b Batch) error {
	to := e.to
	if target != "" {
		var err error
		if to, err = notifier.Recipients([]string{target}); err != nil {
			return err
		}
	}
	if len(to) == 0 {
		return errors.New("it has no recipients: set to")
	}
	missing := e.missing(to, b)
	if len(missing) == 0 {
		e.note(addressed{}, b)
		return nil
	}
	return e.sendTo(ctx, missing, to, b)
}

// sendTo sends a mail to some of its recipients. The others have it.
func (e *email) sendTo(ctx context.Context, to, all []*mail.Address, b Batch) error {
	client, stop, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer stop()
	defer client.Close()
	if err := e.authenticate(client); err != nil {
		return err
	}
	if err := client.Mail(e.from.Address); err != nil {
		return fmt.Errorf("%s refused the sender: %w", e.host, err)
	}
	given, err := e.address(client, to)
	switch {
	case err != nil && len(to) < len(all): // the others have it
		e.note(given, b)
		if given.later == nil {
			return nil
		}
		return &PartialError{given.later}
	case err != nil:
		return err
	}
	body, err := client.Data()
	if err == nil {
		_, err = body.Write(e.message(all, given.refused, b))
	}
	if err == nil {
		err = body.Close() // the server has it now
	}
	if err != nil {
		return forGood(err, fmt.Errorf("%s refused the mail: %w", e.host, err))
	}
	_ = client.Quit() // the mail is accepted, so an error does not matter
	e.note(given, b)
	if given.later != nil {
		return &PartialError{given.later}
	}
	return nil
}

// addressed is the server's answer about the recipients of a mail.
type addressed struct {
	settled []string // that it takes, or refuses for good
	refused []string
	later   error // why it does not take the mail for some yet
}

// address gives the server the recipients of a mail. It returns an error only if the
// server refuses all: one outdated address must not keep the mail from the others.
func (e *email) address(client *smtp.Client, to []*mail.Address) (given addressed, err error) {
	for _, address := range to {
		failure := client.Rcpt(address.Address)
		if failure != nil {
			given.refused = append(given.refused, address.Address)
			err = fmt.Errorf("%s refused the recipient %s: %w", e.host, address.Address, failure)
		}
		if answer, ok := errors.AsType[*textproto.Error](failure); failure != nil && !(ok && answer.Code >= 500) {
			given.later = err
		} else {
			given.settled = append(given.settled, address.Address)
		}
	}
	if len(given.refused) < len(to) {
		return given, nil
	}
	return given, err
}

// missing returns the recipients still without an alert of a mail: an earlier attempt may
// have reached the others.
func (e *email) missing(to []*mail.Address, b Batch) []*mail.Address {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(to), func(address *mail.Address) bool {
		return !slices.ContainsFunc(b.Alerts, func(a Alert) bool {
			p := e.partly[a.ID]
			return p == nil || !slices.Contains(p.settled, address.Address)
		})
	})
}

// note keeps the settled recipients for the next attempt, if there is one.
func (e *email) note(given addressed, b Batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(e.partly, func(_ uuid.UUID, p *partly) bool { return now.Sub(p.at) > keepPartly })
	for _, a := range b.Alerts {
		if given.later == nil {
			delete(e.partly, a.ID)
			continue
		}
		if e.partly[a.ID] == nil {
			e.partly[a.ID] = &partly{}
		}
		p := e.partly[a.ID]
		p.at, p.settled = now, append(p.settled, given.settled...)
	}
}

// forGood marks an error by a refusal, if SMTP calls it permanent.
func forGood(cause, err error) error {
	if answer, ok := errors.AsType[*textproto.Error](cause); ok && answer.Code >= 500 {
		return &RefusedError{err}
	}
	return err
}

// connect returns a connection. It ends with the context, until stop is called.
func (e *email) connect(ctx context.Context) (client *smtp.Client, stop func() bool, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(e.host, e.port))
	if err != nil {
		return nil, nil, fmt.Errorf("%s cannot be reached: %w", e.host, err)
	}
	plain := conn
	stop = context.AfterFunc(ctx, func() { _ = plain.SetDeadline(time.Unix(1, 0)) }) // fails only for one that is closed
	if client, err = e.greet(conn); err != nil {
		stop()
		return nil, nil, err
	}
	return client, stop, nil
}

// greet secures a connection, or closes it.
func (e *email) greet(conn net.Conn) (*smtp.Client, error) {
	if e.port == "465" {
		conn = tls.Client(conn, e.tls)
	}
	client, err := smtp.NewClient(conn, e.host)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s did not greet: %w", e.host, err)
	}
	if _, encrypted := conn.(*tls.Conn); encrypted {
		return client, nil
	}
	switch offered, _ := client.Extension("STARTTLS"); {
	case offered:
		err = client.StartTLS(e.tls)
	case !isLoopback(conn.RemoteAddr()):
		err = errors.New("it offers no STARTTLS; alerts and passwords are not sent in the clear")
	}
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("%s: %w", e.host, err)
	}
	return client, nil
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func (e *email) authenticate(client *smtp.Client) error {
	if e.username == "" {
		return nil
	}
	password, err := e.password.read()
	if err != nil {
		return err
	}
	err = client.Auth(smtp.PlainAuth("", e.username, password, e.host))
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("%s refused the user %s with code %d", e.host, e.username, answer.Code) // its text could repeat the password
	}
	if err != nil {
		return fmt.Errorf("%s: the user %s: %w", e.host, e.username, err)
	}
	return nil
}

// message is a mail about some alerts. Its readers learn who does not get it.
func (e *email) message(to []*mail.Address, refused []string, b Batch) []byte {
	addresses := make([]string, len(to))
	for i, address := range to {
		addresses[i] = address.String()
	}
	var written bytes.Buffer
	for _, header := range [][2]string{
		{"From", e.from.String()},
		{"To", strings.Join(addresses, ",\r\n ")},
		{"Subject", mime.QEncoding.Encode("utf-8", b.Title())},
		{"Date", b.At.UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + idOf(b.Alerts).String() + "@tenure>"}, // of every attempt
		{"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&written, "%s: %s\r\n", header[0], header[1])
	}
	written.WriteString("\r\n")
	text := quotedprintable.NewWriter(&written)
	fmt.Fprint(text, strings.ReplaceAll(b.body(), "\n", "\r\n"))
	if len(refused) > 0 {
		fmt.Fprintf(text, "\r\nThe mail server takes no mail for %s.\r\n", strings.Join(refused, ", "))
	}
	_ = text.Close() // a buffer takes everything
	return written.Bytes()
}
