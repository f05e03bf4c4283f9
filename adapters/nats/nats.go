// Package nats publishes the messages of an outbox to a stream of NATS JetStream in
// batches, in order and without gaps:
//
//   - Every message names the message that must be the last one in the stream. So after
//     a rejected message, the server rejects all later ones.
//   - The id for the server's detection of duplicates consists of the message id and the
//     term. So the server drops repeated messages within a term, but no message of the
//     next leader because a stale one has already sent it.
//   - As soon as the next leader has published a message, the server rejects messages of
//     the stale leader, because they do not follow the last message.
//
// A stream can contain a message twice only around a change of term. Consumers recognize
// it by [outbox.HeaderID].
package nats

import (
	"cmp"
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
	// Name is the name of the publisher; see outbox.Publisher. Default: "nats".
	Name string
	// Subject returns the subject of a message. One stream must listen to all of them.
	// Default: the topic and the type of the event, as in "orders.placed", with "_" for
	// characters not allowed in a subject.
	Subject func(outbox.Message) string
	// SharedStream is needed if other programs publish to the stream too. Then each
	// message waits for the acknowledgment of the one before, which is slower, and a
	// stale leader is not rejected: consumers recognize it by outbox.HeaderTerm.
	SharedStream bool
	// Timeout bounds the time until a message is acknowledged. Default: 5 s.
	Timeout time.Duration
	// Domain is the JetStream domain. Default: the server's.
	Domain string
}

// Publisher sends messages to one stream. It is safe for concurrent use, but each topic
// needs its own publisher.
type Publisher struct {
	config Config
	conn   *nats.Conn
	stream jetstream.JetStream

	mu sync.Mutex
	// Guarded by mu.
	term   int64
	lastID string // of the last message in the stream; empty if unknown
}

var (
	_ outbox.Publisher     = (*Publisher)(nil)
	_ outbox.HealthChecker = (*Publisher)(nil)
	_ outbox.ModePreferrer = (*Publisher)(nil)
)

// New returns a Publisher on a connection. The caller closes the connection. An error
// matches tenure.ErrInvalidConfig.
func New(conn *nats.Conn, config Config) (*Publisher, error) {
	config.Name = cmp.Or(config.Name, "nats")
	if config.Subject == nil {
		config.Subject = defaultSubject
	}
	config.Timeout = cmp.Or(config.Timeout, 5*time.Second)
	if config.Timeout < 0 {
		return nil, fmt.Errorf("%w: the timeout of %s is %v; it must be positive", tenure.ErrInvalidConfig, config.Name, config.Timeout)
	}
	// Without a limit, missing acknowledgments would accumulate.
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

// defaultSubject returns the subject of a message if Config.Subject is not set.
func defaultSubject(m outbox.Message) string {
	return subjectToken(m.Topic) + "." + subjectToken(m.Event.Type)
}

// subjectToken makes a text valid in a subject, without empty parts between dots.
func subjectToken(text string) string {
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

// Healthy implements [outbox.HealthChecker]. It returns an error unless the connection
// is open: otherwise the client would buffer messages and send them too late.
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
		p.term, p.lastID = messages[0].Term, ""
	}
	var futures []jetstream.PubAckFuture
	position, failure := p.expectedPositionLocked(ctx, messages[0])
	if failure == nil {
		futures, failure = p.sendLocked(ctx, messages, position)
	}
	acknowledged := 0
	for _, future := range futures {
		if err := p.awaitAck(ctx, future); err != nil {
			failure = err
			break
		}
		acknowledged++
	}
	if failure != nil {
		p.lastID = "" // the server may still store messages that are in flight
		return acknowledged, fmt.Errorf("publish to NATS: %w", p.withRefusal(failure))
	}
	return acknowledged, nil
}

// withRefusal adds the server's refusal to a failure. The server answers a publication
// without permission on the connection only, so its acknowledgment times out.
func (p *Publisher) withRefusal(failure error) error {
	refusal := p.conn.LastError()
	if !errors.Is(refusal, nats.ErrPermissionViolation) || !errors.Is(failure, processor.ErrUnavailable) {
		return failure
	}
	return fmt.Errorf("%w; last refusal: %w", failure, refusal)
}

// expectedPositionLocked returns the options with the last message of the stream. The
// first message must follow it.
func (p *Publisher) expectedPositionLocked(ctx context.Context, first outbox.Message) ([]jetstream.PublishOpt, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case p.config.SharedStream:
		return nil, nil
	case p.lastID != "":
		return []jetstream.PublishOpt{jetstream.WithExpectLastMsgID(p.lastID)}, nil
	}
	limited, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	subject := p.config.Subject(first)
	name, err := p.stream.StreamNameBySubject(limited, subject)
	if err != nil {
		return nil, classify(fmt.Errorf("find the stream that listens to %s: %w", subject, err))
	}
	stream, err := p.stream.Stream(limited, name)
	if err != nil {
		return nil, classify(fmt.Errorf("read the stream %s: %w", name, err))
	}
	return []jetstream.PublishOpt{jetstream.WithExpectLastSequence(stream.CachedInfo().State.LastSeq)}, nil
}

// sendLocked sends messages after a position until one fails.
func (p *Publisher) sendLocked(ctx context.Context, messages []outbox.Message, position []jetstream.PublishOpt) ([]jetstream.PubAckFuture, error) {
	futures := make([]jetstream.PubAckFuture, 0, len(messages))
	for _, m := range messages {
		if ctx.Err() != nil {
			return futures, context.Cause(ctx)
		}
		id := fmt.Sprintf("%v/%d", m.ID, m.Term)
		// Retries by the client would let later messages overtake.
		options := slices.Concat(position, []jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0)})
		future, err := p.stream.PublishMsgAsync(&nats.Msg{Subject: p.config.Subject(m), Header: header(m), Data: m.Event.Data}, options...)
		if err != nil {
			return futures, classify(err)
		}
		futures = append(futures, future)
		if !p.config.SharedStream {
			p.lastID, position = id, []jetstream.PublishOpt{jetstream.WithExpectLastMsgID(id)}
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

func (p *Publisher) awaitAck(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return classify(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ErrForeignWriter means: the last message of the stream is not the expected one, because
// another program publishes to the stream or deleted messages. The published messages are
// in order, and the next attempt continues after them. The error can occur once at the
// beginning of a term, while the last leader was still sending. If it recurs, set
// SharedStream.
var ErrForeignWriter = errors.New("another program publishes to the stream without SharedStream, or deleted messages")

// The server's codes for a message out of the expected order, or larger than its stream
// allows.
const (
	wrongLastID       jetstream.ErrorCode = 10070
	wrongLastSequence jetstream.ErrorCode = 10071
	tooLarge          jetstream.ErrorCode = 10054
	headersTooLarge   jetstream.ErrorCode = 10097
)

// classify maps an error to poison if the message is too large or has an invalid
// subject, and otherwise to an outage.
func classify(err error) error {
	var answer *jetstream.APIError
	var code jetstream.ErrorCode
	if errors.As(err, &answer) {
		code = answer.ErrorCode
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject), code == tooLarge, code == headersTooLarge:
		return fmt.Errorf("%w: %w", processor.ErrPoison, err)
	case code == wrongLastID, code == wrongLastSequence:
		return fmt.Errorf("%w: %w: %w", processor.ErrUnavailable, ErrForeignWriter, err)
	default:
		return fmt.Errorf("%w: %w", processor.ErrUnavailable, err)
	}
}
