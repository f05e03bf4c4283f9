package hostile

import (
	"bytes"
	"encoding/binary"
)

// message is one message of a server.
type message struct {
	kind byte
	body []byte
}

// encode appends messages as they are sent.
func encode(to []byte, messages ...message) []byte {
	for _, m := range messages {
		to = append(to, m.kind)
		to = binary.BigEndian.AppendUint32(to, uint32(len(m.body)+4))
		to = append(to, m.body...)
	}
	return to
}

// next splits the first message off a stream. It returns false if the stream has no whole
// message.
func next(stream []byte) (m message, rest []byte, whole bool) {
	if len(stream) < 5 {
		return m, stream, false
	}
	end := 1 + int64(binary.BigEndian.Uint32(stream[1:]))
	if end < 5 || end > int64(len(stream)) {
		return m, stream, false
	}
	return message{stream[0], bytes.Clone(stream[5:end])}, stream[end:], true
}

// columns returns the values of a row, nil for NULL, and false if the body is no row.
func columns(row []byte) (values [][]byte, ok bool) {
	if len(row) < 2 {
		return nil, false
	}
	n, rest := int(binary.BigEndian.Uint16(row)), row[2:]
	for range n {
		if len(rest) < 4 {
			return nil, false
		}
		length := int(int32(binary.BigEndian.Uint32(rest)))
		rest = rest[4:]
		if length < 0 {
			values = append(values, nil)
			continue
		}
		if length > len(rest) {
			return nil, false
		}
		values = append(values, append([]byte{}, rest[:length]...))
		rest = rest[length:]
	}
	return values, len(rest) == 0
}

// row is the reverse of columns.
func row(values [][]byte) message {
	body := binary.BigEndian.AppendUint16(nil, uint16(len(values)))
	for _, value := range values {
		if value == nil {
			body = binary.BigEndian.AppendUint32(body, 1<<32-1)
			continue
		}
		body = binary.BigEndian.AppendUint32(body, uint32(len(value)))
		body = append(body, value...)
	}
	return message{'D', body}
}

// report is a notice or an error.
func report(kind byte, severity, code, text string) message {
	var body []byte
	for _, field := range []string{"S" + severity, "V" + severity, "C" + code, "M" + text} {
		body = append(append(body, field...), 0)
	}
	return message{kind, append(body, 0)}
}

// cancelRequest takes the place of the protocol's version.
const cancelRequest = 1234<<16 | 5678

func ready(status byte) message { return message{'Z', []byte{status}} }

// asks reads the stream of a client. It returns what the client asks up to each Sync.
type asks struct {
	stream  []byte
	started bool
	// canceled is set by a request to cancel a statement, after which a server closes.
	canceled bool
	purpose  string // the last word of the application name
	present  string
}

// add takes bytes of the stream and returns the questions that are complete. The first
// one is the start-up message, as an empty text.
func (a *asks) add(more []byte) (complete []string) {
	a.stream = append(a.stream, more...)
	if !a.started {
		if len(a.stream) < 8 || len(a.stream) < int(binary.BigEndian.Uint32(a.stream)) {
			return nil
		}
		length := binary.BigEndian.Uint32(a.stream)
		if binary.BigEndian.Uint32(a.stream[4:]) == cancelRequest {
			a.canceled = true
			return nil
		}
		a.started, a.purpose = true, purposeOf(a.stream[8:length])
		a.stream = a.stream[length:]
		complete = append(complete, "")
	}
	for {
		m, rest, whole := next(a.stream)
		if !whole {
			return complete
		}
		a.stream = rest
		switch m.kind {
		case 'Q':
			complete = append(complete, "Q "+text(m.body))
		case 'P': // the name of the statement, and its text
			name, sql, _ := bytes.Cut(m.body, []byte{0})
			a.present += "P " + string(name) + " " + text(sql) + "\n"
		case 'B':
			_, statement, _ := bytes.Cut(m.body, []byte{0})
			a.present += "B " + text(statement) + "\n"
		case 'S':
			complete = append(complete, a.present)
			a.present = ""
		}
	}
}

// text is what comes before the first zero byte.
func text(body []byte) string {
	before, _, _ := bytes.Cut(body, []byte{0})
	return string(before)
}

func purposeOf(parameters []byte) string {
	fields := bytes.Split(parameters, []byte{0})
	for i := 0; i+1 < len(fields); i += 2 {
		if string(fields[i]) == "application_name" {
			words := bytes.Fields(fields[i+1])
			return string(words[len(words)-1])
		}
	}
	return ""
}
