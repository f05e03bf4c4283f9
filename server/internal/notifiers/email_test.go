package notifiers

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/notifier"
)

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// mailServer is as much of an SMTP server as a client needs.
type mailServer struct {
	address  string
	tls      *tls.Config
	startTLS bool
	greets   bool

	mu    sync.Mutex
	heard []string // commands, and the mail as one entry
	later int      // how many recipients called later are put off
}

// busy reports whether a recipient is put off.
func (s *mailServer) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later--
	return s.later >= 0
}

// startMail starts a server, and returns it with what a client needs to trust it.
func startMail(t *testing.T, s *mailServer) *tls.Config {
	t.Helper()
	web := httptest.NewUnstartedServer(nil) // for its certificate
	web.StartTLS()
	t.Cleanup(web.Close)
	s.tls = &tls.Config{Certificates: web.TLS.Certificates}
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

func (s *mailServer) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, line)
}

func (s *mailServer) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.heard, "\n")
}

func (s *mailServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	reader := bufio.NewReader(conn)
	if !s.greets {
		_, _ = reader.ReadByte() // until the client gives up
		return
	}
	say := func(text string) { fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 mail.test ESMTP")
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSpace(line)
		s.note(line)
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		_, encrypted := conn.(*tls.Conn)
		switch verb {
		case "EHLO":
			if s.startTLS && !encrypted {
				say("250-mail.test\r\n250 STARTTLS")
			} else {
				say("250-mail.test\r\n250 AUTH PLAIN")
			}
		case "STARTTLS":
			say("220 ready")
			secured := tls.Server(conn, s.tls)
			conn, reader = secured, bufio.NewReader(secured)
		case "AUTH":
			if strings.HasSuffix(line, base64.StdEncoding.EncodeToString([]byte("\x00user\x00pass"))) {
				say("235 good")
			} else {
				say("535 the password wrong is wrong")
			}
		case "DATA":
			say("354 continue")
			var body strings.Builder
			for {
				part, err := reader.ReadString('\n')
				if err != nil || part == ".\r\n" {
					break
				}
				body.WriteString(part)
			}
			s.note(body.String())
			if strings.Contains(body.String(), "unwanted") {
				say("554 no such mail here")
			} else {
				say("250 queued")
			}
		case "RCPT":
			switch {
			case strings.Contains(line, "gone"):
				say("550 no user of that name")
			case (strings.Contains(line, "later") || strings.Contains(line, "moves")) && s.busy():
				say("450 try again later")
			case strings.Contains(line, "moves"):
				say("550 no user of that name now")
			default:
				say("250 good")
			}
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 good")
		}
	}
}

// TestEmailIsSentOverTLSWithSafeHeaders: a mail by STARTTLS, with authentication, of which nothing that comes
// from elsewhere becomes a header.
func TestEmailIsSentOverTLSWithSafeHeaders(t *testing.T) {
	t.Parallel()
	server := &mailServer{startTLS: true, greets: true}
	trust := startMail(t, server)
	n := mustOpen(t, Config{
		Type: notifier.Email, SMTP: server.address, From: "Tenure <tenure@example.com>", To: []string{"a@example.com", "b@example.com"},
		Username: "user", Password: "pass", TLS: trust,
	})
	strange := firing()
	strange.Annotations["summary"] = "größer\u00a0\r\nBcc: x"
	if err := n.Send(t.Context(), "", Batch{Cluster: "billing", At: began.Add(41 * time.Second), Alerts: []Alert{strange, firing()}}); err != nil {
		t.Fatal(err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	var text string
	commands := strings.Join(server.heard, "\n")
	for _, line := range server.heard {
		if strings.HasPrefix(line, "From:") {
			text = line
		}
	}
	for _, want := range []string{"STARTTLS\nEHLO", "MAIL FROM:<tenure@example.com>", "RCPT TO:<a@example.com>", "RCPT TO:<b@example.com>"} {
		if !strings.Contains(commands, want) {
			t.Errorf("no %q in %s", want, commands)
		}
	}
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
	if err != nil || subject != "CRITICAL billing: größer\\u00a0 Bcc: x and 1 more for 41 s" || message.Header.Get("Bcc") != "" {
		t.Errorf("the subject is %q (%v); %v", subject, err, message.Header)
	}
	if message.Header.Get("Message-Id") != "<"+idOf([]Alert{strange, firing()}).String()+"@tenure>" {
		t.Errorf("%v", message.Header)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(message.Body))
	if err != nil || !strings.Contains(string(body), "it is Bcc: x for 41 s (since 2026-11-21T12:00:00Z)\r\n") || !strings.Contains(string(body), "  role: <!channel> & co\r\n") {
		t.Errorf("%v: %s", err, body)
	}
}

// TestEmailErrorsHidePassword: the password is in no error, a certificate must be right, and
// a server that says nothing is given up.
func TestEmailErrorsHidePassword(t *testing.T) {
	t.Parallel()
	server := &mailServer{startTLS: true, greets: true}
	trust := startMail(t, server)
	config := Config{Type: notifier.Email, SMTP: server.address, From: "a@b", To: []string{"c@d"}, Username: "user", Password: "wrong", TLS: trust}
	if err := mustOpen(t, config).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%v", err)
	}
	config.TLS = nil
	if err := mustOpen(t, config).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err == nil || strings.Contains(server.all(), "MAIL") {
		t.Errorf("%v", err)
	}
	silent := &mailServer{}
	config.TLS = startMail(t, silent)
	config.SMTP = silent.address
	ctx, cancel := contextWithTimeout(t, 100*time.Millisecond)
	defer cancel()
	if err := mustOpen(t, config).Send(ctx, "", Batch{Alerts: []Alert{firing()}}); err == nil {
		t.Error("no error")
	}
	if isLoopback(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}) || !isLoopback(&net.TCPAddr{IP: net.IPv6loopback}) {
		t.Error("a server elsewhere counts as one on this machine, or the other way round")
	}
}

// TestRefusedRecipientDoesNotBlockOthers: a refused recipient does not keep the mail from the others,
// and the mail names that recipient; if all are refused, it is an error.
func TestRefusedRecipientDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	server := &mailServer{greets: true}
	startMail(t, server)
	config := Config{Type: notifier.Email, SMTP: server.address, From: "a@b", To: []string{"gone@d", "here@d"}}
	if err := mustOpen(t, config).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err != nil {
		t.Fatal(err)
	}
	if heard := server.all(); !strings.Contains(heard, "takes no mail for gone@d.") || !strings.Contains(heard, "RCPT TO:<here@d>") {
		t.Error(heard)
	}
	config.To = []string{"gone@d", "gone@e"}
	if err := mustOpen(t, config).Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err == nil || !strings.Contains(err.Error(), "the recipient gone@e: 550") {
		t.Errorf("%v", err)
	}
}

// TestRecipientPutOffIsTriedAgain: a recipient that the server puts off is tried again until it gets
// the mail, although others have got it, and those do not get it again.
func TestRecipientPutOffIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := &mailServer{greets: true, later: 2}
	startMail(t, server)
	n := mustOpen(t, Config{Type: notifier.Email, SMTP: server.address, From: "a@b", To: []string{"here@d", "later@d", "gone@d"}})
	for range 2 {
		err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}})
		if err == nil || !strings.Contains(err.Error(), "the recipient later@d: 450") {
			t.Fatalf("a recipient was put off: %v", err)
		}
	}
	if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err != nil {
		t.Fatal(err)
	}
	heard := server.all()
	for recipient, want := range map[string]int{"here@d": 1, "later@d": 3, "gone@d": 1} {
		if got := strings.Count(heard, "RCPT TO:<"+recipient+">"); got != want {
			t.Errorf("%s was named %d times, not %d:\n%s", recipient, got, want, heard)
		}
	}
	if got := strings.Count(heard, "Message-ID"); got != 2 {
		t.Errorf("%d mails were sent, not 2", got)
	}
}

// TestRecipientRefusedAfterDelayIsNotTriedAgain: a recipient that is put off and then refused
// for good is settled, like one that is refused in the first attempt.
func TestRecipientRefusedAfterDelayIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	server := &mailServer{greets: true, later: 1}
	startMail(t, server)
	n := mustOpen(t, Config{Type: notifier.Email, SMTP: server.address, From: "a@b", To: []string{"here@d", "moves@d"}})
	if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err == nil || !strings.Contains(err.Error(), "450") {
		t.Fatalf("a recipient was put off: %v", err)
	}
	if err := n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}); err != nil {
		t.Errorf("the last recipient was refused for good: %v", err)
	}
	if got := strings.Count(server.all(), "Message-ID"); got != 1 {
		t.Errorf("%d mails were sent, not 1", got)
	}
}

// TestPermanentRefusalOfEmailIsDistinguished: what the server takes from no sender is another matter
// than a server that is down.
func TestPermanentRefusalOfEmailIsDistinguished(t *testing.T) {
	t.Parallel()
	server := &mailServer{greets: true}
	startMail(t, server)
	n := mustOpen(t, Config{Type: notifier.Email, SMTP: server.address, From: "a@b", To: []string{"c@d"}})
	unwanted := firing()
	unwanted.Annotations["summary"] = "unwanted"
	err := n.Send(t.Context(), "", Batch{Alerts: []Alert{unwanted}})
	if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), "554") {
		t.Errorf("%#v", err)
	}
}

// TestEmailEndsWithContext: an attempt ends with its context, also in the middle: a
// leader must not wait for a server that says nothing.
func TestEmailEndsWithContext(t *testing.T) {
	t.Parallel()
	silent := &mailServer{}
	startMail(t, silent)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	err := mustOpen(t, Config{Type: notifier.Email, SMTP: silent.address, From: "a@b", To: []string{"c@d"}}).Send(ctx, "", Batch{Alerts: []Alert{firing()}})
	if took := time.Since(began); err == nil || took > attemptTimeout/2 {
		t.Errorf("after %v: %v", took, err)
	}
}

// TestLocalEmailNeedsNoTLS: a server on this machine needs no TLS; the target of the
// address replaces the recipients.
func TestLocalEmailNeedsNoTLS(t *testing.T) {
	t.Parallel()
	server := &mailServer{greets: true}
	startMail(t, server)
	n := mustOpen(t, Config{Type: notifier.Email, SMTP: server.address, From: "a@b", To: []string{"c@d"}})
	if err := n.Send(t.Context(), "other@example.com", Batch{Alerts: []Alert{firing()}}); err != nil {
		t.Fatal(err)
	}
	if heard := server.all(); !strings.Contains(heard, "RCPT TO:<other@example.com>") || strings.Contains(heard, "RCPT TO:<c@d>") {
		t.Error(heard)
	}
	if err := n.Send(t.Context(), "nobody", Batch{Alerts: []Alert{firing()}}); err == nil {
		t.Error("no error")
	}
}
