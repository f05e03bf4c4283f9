package pgdial

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// answerLimits bound the answers of a server: a hostile server could otherwise fill the
// memory of its clients. Answers to Tenure's statements are far smaller: 10,000 roles have
// about 5 MB.
type answerLimits struct {
	report      int // bytes of an error or a notice, for the log
	description int // bytes of the types of parameters or columns, kept by the driver
	message     int // bytes of any other message
	answer      int // bytes of an answer, with perMessage for each message
	status      int // bytes of all changes of parameters, kept by the driver; counted as in answer
	// paired requires that each answer has a question. A batch of the driver does not pass
	// through here. Pools can send a batch, so they do without.
	paired bool
}

// perMessage is the cost of a message in addition to its bytes: a row of few bytes becomes
// a value of several hundred.
const perMessage = 256

// limitsOfAnswers returns the limits of a connection's use.
func limitsOfAnswers(use Use) answerLimits {
	limits := answerLimits{report: 64 << 10, description: 64 << 10, message: 8 << 20, answer: 24 << 20, status: 1 << 20, paired: use&^Pool != 0}
	switch use {
	case Migration: // an error quotes the statements
		limits.report = 1 << 20
	case Pool: // reads tables of users, and months of samples
		limits = answerLimits{report: 1 << 20, description: 1 << 20, message: 64 << 20, answer: 256 << 20, status: 1 << 20}
	}
	return limits
}

// limitAnswers makes the connections of a configuration refuse answers beyond the limits.
// The error of a refusal closes the connection.
func limitAnswers(config *pgx.ConnConfig, use Use) {
	build := config.BuildFrontend
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		a := newAnswers(r, w, use)
		return build(a, questions{a})
	}
}

// newAnswers returns the reader of a new connection's answers. The answer to the start-up
// is due.
func newAnswers(r io.Reader, w io.Writer, use Use) *answers {
	return &answers{from: r, to: w, limits: limitsOfAnswers(use), asked: []bool{false}}
}

// questions writes the messages of a client. Each call has whole messages.
type questions struct{ answers *answers }

func (q questions) Write(p []byte) (int, error) {
	q.answers.ask(p)
	return q.answers.to.Write(p)
}

// answers reads the messages of a server as long as they keep the limits, and answer
// something.
type answers struct {
	from   io.Reader
	to     io.Writer
	limits answerLimits

	mu      sync.Mutex
	started bool   // the start-up message, without a type, was sent
	asked   []bool // for each due answer, whether it must have a result
	open    bool   // something was asked after the last Sync
	runs    bool   // and it runs a statement
	spent   int    // of limits.answer
	result  bool   // the present answer has the end of a result

	// Of the reading goroutine.
	head   []byte // the received part of a message's type and length
	body   int    // the rest of a message
	status int    // of limits.status
}

// ask records the messages of a client.
func (a *answers) ask(p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.started || !a.limits.paired {
		a.started = true
		return
	}
	for len(p) >= 5 {
		kind, length := p[0], 1+int64(binary.BigEndian.Uint32(p[1:]))
		if len(a.asked) == 0 && !a.open {
			a.spent = 0
		}
		switch kind {
		case 'Q', 'S': // Query, Sync
			a.asked = append(a.asked, a.runs || kind == 'Q')
			a.open, a.runs = false, false
		case 'P', 'B', 'D', 'E', 'C', 'H': // Parse, Bind, Describe, Execute, Close, Flush
			a.open, a.runs = true, a.runs || kind == 'E'
		}
		p = p[min(length, int64(len(p))):]
	}
}

func (a *answers) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if refusal := a.check(p[:n]); refusal != nil {
		return 0, refusal
	}
	return n, err
}

// check follows the messages in the received bytes.
func (a *answers) check(arrived []byte) error {
	for len(arrived) > 0 {
		if a.body > 0 {
			passed := min(a.body, len(arrived))
			a.body, arrived = a.body-passed, arrived[passed:]
			continue
		}
		missing := min(5-len(a.head), len(arrived))
		a.head, arrived = append(a.head, arrived[:missing]...), arrived[missing:]
		if len(a.head) < 5 {
			return nil
		}
		if err := a.begin(a.head[0], binary.BigEndian.Uint32(a.head[1:])); err != nil {
			return err
		}
		a.head = a.head[:0]
	}
	return nil
}

// begin begins a message. length includes itself.
func (a *answers) begin(kind byte, length uint32) error {
	if length < 4 {
		return fmt.Errorf("the server sent a message of type %q without a length", kind)
	}
	size, most := uint64(length-4), a.limits.message
	switch kind {
	case 'E', 'N':
		most = a.limits.report
	case 'T', 't':
		most = a.limits.description
	}
	if size > uint64(most) {
		return fmt.Errorf("the server sent a message of type %q with %d bytes; at most %d are read", kind, size, most)
	}
	a.body = int(size)
	return a.spend(kind, a.body+perMessage)
}

// spend counts a message.
func (a *answers) spend(kind byte, cost int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	idle := a.limits.paired && len(a.asked) == 0 && !a.open
	switch kind {
	case 'Z':
		return a.endLocked()
	case 'C', 'E', 'I', 's':
		a.result = true
		if idle && kind != 'E' { // an error can be the end of the session
			return errUnasked(kind)
		}
	case 'A', 'N':
		if idle { // each is handled alone, and nothing is kept
			return nil
		}
	case 'S':
		if a.status += cost; a.status > a.limits.status {
			return fmt.Errorf("the server changes its parameters without end: more than %d kB have come", a.limits.status>>10)
		}
	default:
		if idle {
			return errUnasked(kind)
		}
	}
	if a.spent += cost; a.spent > a.limits.answer {
		return fmt.Errorf("the server's answer does not end: more than %d MB have come", a.limits.answer>>20)
	}
	return nil
}

// endLocked ends an answer.
func (a *answers) endLocked() error {
	switch {
	case !a.limits.paired:
		a.spent = 0
		return nil
	case len(a.asked) == 0:
		return errors.New("the server ended an answer that nothing had asked for")
	case a.asked[0] && !a.result: // the driver would wait for it, without a deadline
		return errors.New("the server ended an answer without a result")
	}
	a.asked, a.result = a.asked[1:], false
	return nil
}

func errUnasked(kind byte) error {
	return fmt.Errorf("the server sent a message of type %q that nothing had asked for", kind)
}
