package faultwire

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

// session is what the proxy understands of a connection's protocol: the manual's
// chapter "Frontend/Backend Protocol". Bytes are forwarded as they come, also parts
// of messages; the session only records where messages end.
type session struct {
	server net.Conn
	notice func()          // called after what Await looks at has changed
	done   <-chan struct{} // closed at the end of the connection

	mu         sync.Mutex
	changed    broadcast
	opaque     bool   // TLS, or a request to cancel
	lose       func() // ends the connection of a request to cancel; nil if such requests pass
	lost       bool   // it was one, and must end
	starting   bool   // before the startup message, which has no type byte
	asked      bool   // the client asked for encryption: the server answers with one byte
	client     framer
	backend    framer
	idle       bool // the server waits for the client, outside a transaction
	injection  *injection
	parameters map[string]string
	pid        uint32
}

func newSession(server net.Conn, notice func(), done <-chan struct{}) *session {
	return &session{
		server: server, notice: notice, done: done, changed: newBroadcast(),
		starting: true, parameters: map[string]string{},
	}
}

func (s *session) parameter(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parameters[name]
}

func (s *session) backendPID() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// fromClient takes note of bytes on their way to the server. It keeps them back
// while an injected statement runs.
func (s *session) fromClient(data []byte) []byte {
	known, lost := false, false
	defer func() {
		if known {
			s.notice()
		}
		if lost {
			s.lose()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaitInjection()
	s.idle = false
	for rest := data; len(rest) > 0 && !s.opaque; {
		headerless := s.starting
		n, message := s.client.take(rest, headerless)
		rest = rest[n:]
		switch {
		case s.client.torn:
			s.opaque = true
		case message != nil && headerless:
			s.startup(message)
			known = true
		}
	}
	if lost = s.lost; lost {
		return nil
	}
	return data
}

// The codes in place of a protocol version in messages other than a startup.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

func (s *session) startup(message []byte) {
	switch binary.BigEndian.Uint32(message[4:]) {
	case sslRequest, gssRequest:
		s.asked = true
	case cancelRequest:
		s.opaque, s.lost = true, s.lose != nil
	default:
		var startup pgproto3.StartupMessage
		if err := startup.Decode(message[4:]); err != nil {
			s.opaque = true
			return
		}
		s.starting = false
		s.parameters = startup.Parameters
	}
}

// fromServer takes note of bytes on their way to the client and withholds the
// answer to an injected statement.
func (s *session) fromServer(data []byte) []byte {
	known := false
	defer func() {
		if known {
			s.notice()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()

	var forward []byte
	if s.asked && len(data) > 0 {
		s.asked = false
		s.opaque = data[0] == 'S' || data[0] == 'G'
		forward, data = append(forward, data[0]), data[1:]
	}
	for len(data) > 0 && !s.opaque {
		n, message := s.backend.take(data, false)
		if s.injection == nil {
			forward = append(forward, data[:n]...)
		}
		data = data[n:]
		switch {
		case s.backend.torn:
			s.opaque = true
		case message == nil:
		case s.injection != nil:
			if message[0] == notificationResponse {
				forward = append(forward, message...)
			}
			s.answered(message)
		default:
			known = s.recordMessage(message) || known
		}
	}
	return append(forward, data...)
}

// The types of messages from the server that matter here.
const (
	backendKeyData       = 'K'
	errorResponse        = 'E'
	notificationResponse = 'A'
	parameterStatus      = 'S'
	readyForQuery        = 'Z'
)

const headerSize = 5

// recordMessage records a message from the server and reports whether it changed what is
// known about the connection.
func (s *session) recordMessage(message []byte) bool {
	body := message[headerSize:]
	switch message[0] {
	case readyForQuery:
		s.idle = len(body) == 1 && body[0] == 'I'
		s.changed.send()
	case backendKeyData:
		if len(body) >= 4 {
			s.pid = binary.BigEndian.Uint32(body)
			return true
		}
	case parameterStatus:
		var status pgproto3.ParameterStatus
		if status.Decode(body) == nil {
			s.parameters[status.Name] = status.Value
			return true
		}
	}
	return false
}

// framer finds the ends of messages in a stream.
type framer struct {
	message []byte // as far as it has come
	torn    bool   // the stream makes no sense
}

// maxMessage is more than a message of a sane stream has.
const maxMessage = 1 << 30

// take consumes bytes up to the end of a message at most, and returns how many,
// and the message if it is complete. A message starts with its type, unless it
// is headerless, and its length.
func (f *framer) take(data []byte, headerless bool) (n int, message []byte) {
	lengthAt := 1
	if headerless {
		lengthAt = 0
	}
	for n < len(data) {
		missing := lengthAt + 4 - len(f.message)
		if missing <= 0 {
			length := binary.BigEndian.Uint32(f.message[lengthAt:])
			if length < 4 || length > maxMessage || headerless && length < 8 {
				f.torn = true
				return n, nil
			}
			missing = lengthAt + int(length) - len(f.message)
		}
		part := min(missing, len(data)-n)
		f.message = append(f.message, data[n:n+part]...)
		n += part
		if f.complete(lengthAt) {
			message, f.message = f.message, nil
			return n, message
		}
	}
	return n, nil
}

func (f *framer) complete(lengthAt int) bool {
	if len(f.message) < lengthAt+4 {
		return false
	}
	return len(f.message) == lengthAt+int(binary.BigEndian.Uint32(f.message[lengthAt:]))
}
