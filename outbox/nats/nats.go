// Package nats publishes the messages of an outbox to a stream of NATS JetStream,
// in order and without gaps, many at a time.
//
// Three things make that so. Every message says what must be the last in the
// stream: the one before it, or at the beginning what was there before. So the
// server takes none after one that it refused. The id for the server's own
// detection of duplicates is that of the message with its term: it drops what an
// attempt within a term sends again, and never drops what the next leader sends
// because a stale one sent it before. And together they keep a stale leader out:
// as soon as the next leader has published anything, what the stale one still
// sends follows nothing in the stream, and is refused.
//
// So a stream holds a message twice only around a change of term; consumers know
// it by the header [outbox.HeaderID].
package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// Config configures a publisher. The zero value is ready to use.
type Config struct {
	// Name is the publisher's, as of outbox.Publisher. Default "nats".
	Name string
	// Subject returns the subject of a message, which a stream must listen to:
	// the same stream for all. Default the topic and the type of the event, as
	// in "orders.placed", with characters that a subject cannot have as "_".
	Subject func(outbox.Message) string
	// SharedStream says that others publish to the stream as well. Then each
	// message is sent when the one before was acknowledged, which is slower; and
	// a stale leader is not kept out, but told from the present one by the header
	// outbox.HeaderTerm.
	SharedStream bool
	// Timeout is how long to wait for the acknowledgment of a message. Default
	// 5 s.
	Timeout time.Duration
	// Domain is the JetStream domain. Default that of the server.
	Domain string
}

// Publisher sends messages to one stream. It is safe for concurrent use, by one
// topic at a time: give each topic a publisher of its own.
type Publisher struct {
	config Config
	conn   *nats.Conn
	stream jetstream.JetStream

	mu   sync.Mutex
	term int64
	last string // the id of the last message in the stream, if it is known
}

var (
	_ outbox.Publisher     = (*Publisher)(nil)
	_ outbox.HealthChecker = (*Publisher)(nil)
	_ outbox.ModePreferrer = (*Publisher)(nil)
)

// New makes a publisher on a connection, which stays the caller's. It returns an
// error that matches tenure.ErrInvalidConfig if the configuration cannot be used.
func New(conn *nats.Conn, config Config) (*Publisher, error) {
	if config.Name == "" {
		config.Name = "nats"
	}
	if config.Subject == nil {
		config.Subject = subject
	}
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Second
	}
	if config.Timeout < 0 {
		return nil, fmt.Errorf("%w: the timeout of %s is %v; it must be positive", tenure.ErrInvalidConfig, config.Name, config.Timeout)
	}
	// Acknowledgments that never come must not pile up.
	limit := jetstream.WithPublishAsyncTimeout(config.Timeout)
	var stream jetstream.JetStream
	var err error
	if config.Domain == "" {
		stream, err = jetstream.New(conn, limit)
	} else {
		stream, err = jetstream.NewWithDomain(conn, config.Domain, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tenure.ErrInvalidConfig, err)
	}
	return &Publisher{config: config, conn: conn, stream: stream}, nil
}

// subject is the default subject.
func subject(m outbox.Message) string {
	return token(m.Topic) + "." + token(m.Event.Type)
}

// token makes a text usable in a subject: dots may separate, but not at an end or
// beside one another.
func token(text string) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '*' || r == '>' || r == 0x7f {
			return '_'
		}
		return r
	}, text)
	parts := strings.Split(text, ".")
	for i, part := range parts {
		if part == "" {
			parts[i] = "_"
		}
	}
	return strings.Join(parts, ".")
}

// Name implements [outbox.Publisher].
func (p *Publisher) Name() string { return p.config.Name }

// PreferredMode implements [outbox.ModePreferrer].
func (p *Publisher) PreferredMode() outbox.Mode {
	if p.config.SharedStream {
		return outbox.Individual
	}
	return outbox.Batch
}

// Healthy implements [outbox.HealthChecker]: whether the connection stands. The
// client would keep messages until it does, and send them when they are stale.
func (p *Publisher) Healthy(context.Context) error {
	if status := p.conn.Status(); status != nats.CONNECTED {
		return fmt.Errorf("the connection to NATS is %v", strings.ToLower(status.String()))
	}
	return nil
}

// Publish implements [outbox.Publisher].
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if messages[0].Term != p.term {
		p.term, p.last = messages[0].Term, ""
	}
	var futures []jetstream.PubAckFuture
	position, failure := p.position(ctx, messages[0])
	if failure == nil {
		futures, failure = p.send(ctx, messages, position)
	}
	acknowledged := 0
	for _, future := range futures {
		if err := p.wait(ctx, future); err != nil {
			failure = err
			break
		}
		acknowledged++
	}
	if failure != nil {
		p.last = "" // what is under way may still be stored
		return acknowledged, fmt.Errorf("publishing to NATS: %w", failure)
	}
	return acknowledged, nil
}

// position returns what must be the stream's last message when the first message
// arrives.
func (p *Publisher) position(ctx context.Context, first outbox.Message) ([]jetstream.PublishOpt, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case p.config.SharedStream:
		return nil, nil
	case p.last != "":
		return []jetstream.PublishOpt{jetstream.WithExpectLastMsgID(p.last)}, nil
	}
	limited, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	subject := p.config.Subject(first)
	name, err := p.stream.StreamNameBySubject(limited, subject)
	if err != nil {
		return nil, blame(fmt.Errorf("looking for the stream that listens to %s: %w", subject, err))
	}
	stream, err := p.stream.Stream(limited, name)
	if err != nil {
		return nil, blame(fmt.Errorf("looking at the stream %s: %w", name, err))
	}
	return []jetstream.PublishOpt{jetstream.WithExpectLastSequence(stream.CachedInfo().State.LastSeq)}, nil
}

// send sends messages behind a position until one cannot be sent.
func (p *Publisher) send(ctx context.Context, messages []outbox.Message, position []jetstream.PublishOpt) ([]jetstream.PubAckFuture, error) {
	futures := make([]jetstream.PubAckFuture, 0, len(messages))
	for _, m := range messages {
		if ctx.Err() != nil {
			return futures, context.Cause(ctx)
		}
		id := fmt.Sprintf("%v/%d", m.ID, m.Term)
		// The client's own attempts would let later messages overtake.
		options := slices.Concat(position, []jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0)})
		future, err := p.stream.PublishMsgAsync(&nats.Msg{Subject: p.config.Subject(m), Header: header(m), Data: m.Event.Data}, options...)
		if err != nil {
			return futures, blame(err)
		}
		futures = append(futures, future)
		if !p.config.SharedStream {
			p.last, position = id, []jetstream.PublishOpt{jetstream.WithExpectLastMsgID(id)}
		}
	}
	return futures, nil
}

func header(m outbox.Message) nats.Header {
	header := nats.Header{}
	for name, value := range m.Headers() {
		header.Set(name, value)
	}
	return header
}

func (p *Publisher) wait(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return blame(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ErrForeignWriter means that the stream's last message is not what it must be:
// another one publishes to the stream, or messages were deleted. What was
// published is in order, and the next attempt goes on behind it. It can come once
// at the beginning of a term, when the last leader was still at work; if it comes
// back, set SharedStream.
var ErrForeignWriter = errors.New("others publish to the stream, and SharedStream is not set, or they have deleted from it")

// The server's codes for a message that does not follow what it names.
const (
	wrongLastID       jetstream.ErrorCode = 10070
	wrongLastSequence jetstream.ErrorCode = 10071
)

// blame says what an error means for the outbox. But for messages that are too
// large, none is the message's fault.
func blame(err error) error {
	var answer *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadSubject):
		return fmt.Errorf("%w: %w", processor.ErrPoison, err)
	case errors.As(err, &answer) && (answer.ErrorCode == wrongLastID || answer.ErrorCode == wrongLastSequence):
		return fmt.Errorf("%w: %w: %w", processor.ErrUnavailable, ErrForeignWriter, err)
	default:
		return fmt.Errorf("%w: %w", processor.ErrUnavailable, err)
	}
}
