package hostile

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// MaxHeap is what a client's process may need, with all that it has received.
	MaxHeap = 64 << 20
	// endless is how much of a flood the server sends before it gives up.
	endless = 256 << 20
	// A flood comes without pauses up to unhurried. Then a chunk comes in each interval: after
	// the driver has refused an answer, it reads for up to 15 s what still arrives.
	unhurried, interval = 32 << 20, 40 * time.Millisecond
	// patience is how long the server answers one question drop by drop.
	patience = 2 * time.Minute
	// quick answers are played back without their delay.
	quick = 50 * time.Millisecond
)

// Server answers with a recording. It damages some answers, as its seed says.
type Server struct {
	recording *Recording
	seed      uint64
	chance    uint64 // one in so many answers is damaged; 0 is none
	changed   string // a prepared statement, see Change
	change    func(values [][]byte) [][]byte
	notifies  int // notifications of 8 kB before each answer to the reader

	mu      sync.Mutex
	opened  map[string]int // connections by purpose
	faults  []string       // of the client
	unknown []string       // questions without an answer
	peak    uint64         // the largest heap seen
	damages map[string]int // by name
	history []string       // of damaged answers
	acked   time.Time      // when the last acknowledged heartbeat was asked
	granted bool           // the session has a term
}

// NewServer returns a server. A seed of 0 damages nothing.
func NewServer(recording *Recording, seed uint64) *Server {
	s := &Server{recording: recording, seed: seed, opened: map[string]int{}, damages: map[string]int{}}
	if seed != 0 {
		s.chance = []uint64{4, 10, 30, 100}[seed%4]
	}
	return s
}

// Change makes the server change each row that a prepared statement returns, before the
// first connection.
func (s *Server) Change(statement string, change func(values [][]byte) [][]byte) {
	s.changed, s.change = statement, change
}

// Notify makes the server send so many notifications before each answer to the reader.
func (s *Server) Notify(times int) { s.notifies = times }

// Dial connects to the server.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go s.serve(server) // exits when either side closes
	return client, nil
}

// DialSocket connects to the server over a socket, for clients that need one.
func (s *Server) DialSocket(context.Context, string, string) (net.Conn, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }() // the connection stays
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	server, err := listener.Accept()
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	go s.serve(server) // exits when either side closes
	return client, nil
}

// conn is one connection with a client.
type conn struct {
	net.Conn
	server  *Server
	purpose string
	number  int                   // among those of the purpose
	answers map[string][]exchange // by question
	asked   map[string]int
	closed  chan struct{}
}

func (s *Server) serve(network net.Conn) {
	c := &conn{Conn: network, server: s, asked: map[string]int{}, closed: make(chan struct{})}
	var reading asks
	questions := make(chan question, 1<<8)
	go c.answer(questions) // exits when questions is closed or the connection
	defer close(questions)
	defer close(c.closed)
	buffer := make([]byte, 1<<14)
	for {
		n, err := network.Read(buffer)
		for _, ask := range reading.add(buffer[:n]) {
			select {
			case questions <- question{ask, reading.purpose, time.Now()}:
			default: // it asks without end
				return
			}
		}
		if err != nil || reading.canceled {
			_ = network.Close()
			return
		}
	}
}

type question struct {
	ask, purpose string
	at           time.Time
}

// answer answers the questions of a connection in order.
func (c *conn) answer(questions <-chan question) {
	defer c.Close()
	for q := range questions {
		if q.ask == "" {
			c.begin(q.purpose)
		}
		found := c.find(q.ask)
		if found.after > quick && !c.wait(found.after) {
			return
		}
		if !c.deliver(q, found) {
			return
		}
	}
}

func (c *conn) begin(purpose string) {
	s := c.server
	s.mu.Lock()
	c.purpose, c.number = purpose, s.opened[purpose]
	s.opened[purpose]++
	if purpose == "session" {
		s.granted = false
	}
	s.mu.Unlock()
	c.answers = map[string][]exchange{}
	known := s.recording.of(purpose)
	if len(known) == 0 {
		return
	}
	for _, e := range known[min(c.number, len(known)-1)].exchanges {
		c.answers[e.ask] = append(c.answers[e.ask], e)
	}
}

// find returns the recorded answer to a question. The last one is repeated.
func (c *conn) find(ask string) exchange {
	list := c.answers[ask]
	if len(list) == 0 {
		if ask != "Q SHOW pool_version" { // asked where the server does not see the client's address
			c.server.mu.Lock()
			c.server.unknown = append(c.server.unknown, c.purpose+": "+ask)
			c.server.mu.Unlock()
		}
		return exchange{ask: ask, answer: []message{report('E', "ERROR", "42704", "unknown"), ready('I')}}
	}
	at := c.asked[ask]
	c.asked[ask]++
	return list[min(at, len(list)-1)]
}

// wait returns false if the connection ends first.
func (c *conn) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.closed:
		return false
	}
}

// deliver sends an answer or damages it. It returns false if the connection is over.
func (c *conn) deliver(q question, found exchange) bool {
	s := c.server
	if s.change != nil && q.ask == "B "+s.changed+"\n" {
		found.answer = parse(changedRows(found.answer, s.change)[0].raw)
	}
	if s.notifies > 0 && c.purpose == "status" && q.ask != "" {
		c.play([]part{{flood: func(to []byte, _ int) []byte { return encode(to, longNotification) }, times: s.notifies}})
	}
	random, damaged := s.decide(c, q.ask)
	if !damaged {
		c.note(q, found.answer, found.answer)
		_, err := c.Write(encode(nil, found.answer...))
		return err == nil
	}
	name, script := choose(random, found.answer, s.recording)
	what := fmt.Sprintf("%s, to %.100q on connection %d (%s)", name, q.ask, c.number, c.purpose)
	s.mu.Lock()
	s.damages[name]++
	s.history = append(s.history, what)
	s.mu.Unlock()
	c.note(q, found.answer, arriving(script)) // first, since the client is quick
	for i := range script {
		script[i].name = what
	}
	return c.play(script)
}

// decide says whether an answer is damaged. It depends on the seed, the question and how
// often it was asked, but not on the order of goroutines.
func (s *Server) decide(c *conn, ask string) (*rand.Rand, bool) {
	if s.chance == 0 {
		return nil, false
	}
	if s.seed%3 == 0 && ask == "B heartbeat\n" && c.asked[ask] > 3 { // in the same way from now on
		return rand.New(rand.NewPCG(s.seed, 0)), true
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(c.purpose + strconv.Itoa(c.number) + " " + strconv.Itoa(c.asked[ask]) + ask))
	random := rand.New(rand.NewPCG(s.seed, sum.Sum64()))
	return random, random.Uint64N(s.chance) == 0
}

// play sends the parts of a script. It returns false if the connection is over.
func (c *conn) play(script []part) bool {
	for _, p := range script {
		switch {
		case p.hang:
			<-c.closed
			return false
		case p.close:
			return false
		case p.pause > 0 && !c.wait(p.pause):
			return false
		case p.flood != nil:
			if !c.flood(p) {
				return false
			}
		default:
			if _, err := c.Write(p.raw); err != nil {
				return false
			}
		}
	}
	return true
}

// flood sends what a part makes until the client closes the connection. It returns true
// after the end of a flood that has one.
func (c *conn) flood(p part) bool {
	var chunk []byte
	began, sent, measured := time.Now(), 0, 0
	for i := 0; p.times == 0 || i < p.times; i++ {
		if chunk = p.flood(chunk, i); len(chunk) < 1<<14 && p.every == 0 && i+1 != p.times {
			continue
		}
		if _, err := c.Write(chunk); err != nil {
			c.server.measure()
			return false
		}
		if sent += len(chunk); sent-measured > 8<<20 {
			c.server.measure()
			measured = sent
		}
		chunk = chunk[:0]
		if p.most > 0 && sent > p.most {
			c.server.measure()
			return true
		}
		if sent > endless {
			c.server.fault("the client took " + strconv.Itoa(sent>>20) + " MB of one answer on its " + c.purpose + " connection: " + p.name)
			return false
		}
		every := p.every
		if sent > unhurried {
			every = max(every, interval)
		}
		if every > 0 && !c.wait(every) {
			return false
		}
		if time.Since(began) > patience {
			c.server.fault("the client waited " + time.Since(began).String() + " for one answer on its " + c.purpose + " connection: " + p.name)
			return false
		}
	}
	return true
}

func (s *Server) fault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

// measure measures the live heap.
func (s *Server) measure() {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peak = max(s.peak, stats.HeapAlloc)
}

// note records what an answer permits the client to conclude.
func (c *conn) note(q question, recorded, sent []message) {
	if c.purpose != "session" {
		return
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasPrefix(q.ask, "B heartbeat\n") && completes(sent) && sameStart(recorded, sent):
		s.acked = q.at
	case strings.HasPrefix(q.ask, "B take\n") && completes(sent):
		s.granted = true
	}
}

// completes reports whether an answer has a row, and ends as a statement does that was
// carried out. What follows its end is no part of it.
func completes(answer []message) bool {
	rows, done := false, false
	for _, m := range answer {
		switch m.kind {
		case 'D':
			rows = true
		case 'C':
			done = true
		case 'E':
			return false
		case 'Z':
			return rows && done && bytes.Equal(m.body, []byte("I"))
		}
	}
	return false
}

// sameStart reports whether the last rows of both answers begin with the same two values:
// the incarnation, and whether the installation is the same, as text or in binary.
func sameStart(recorded, sent []message) bool {
	first := func(answer []message) (values [][]byte) {
		for _, m := range answer {
			switch m.kind {
			case 'D':
				values, _ = columns(m.body)
			case 'C': // a client reads no row after it
				return values
			}
		}
		return values
	}
	yes := func(value []byte) bool { return string(value) == "t" || string(value) == "\x01" }
	a, b := first(recorded), first(sent)
	return len(a) > 1 && len(b) > 1 && bytes.Equal(a[0], b[0]) && yes(a[1]) == yes(b[1])
}

// MayLead reports whether a client might lead at a moment, if trust lasts this long.
func (s *Server) MayLead(at time.Time, trust time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted && at.Sub(s.acked) <= trust
}

// Faults lists what clients did wrong. Peak is the largest live heap during a flood.
func (s *Server) Faults() (faults []string, peak uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.faults...), s.peak
}

// Unknown lists questions that are not in the recording.
func (s *Server) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.unknown...)
}

// String names the case, and the last damages.
func (s *Server) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("repeat with go test ./internal/hostile -run HarmsNo -seed=%d -cases=1; damaged: %q", s.seed, s.history[max(0, len(s.history)-5):])
}

// Damages counts the damaged answers by the name of the damage.
func (s *Server) Damages() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for name, n := range s.damages {
		counts[name] = n
	}
	return counts
}
