package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Moment is a reading of CLOCK_BOOTTIME. All processes of a host share this clock. It
// continues while a process is stopped and while the machine is suspended.
type Moment int64

// Add returns the moment d later.
func (m Moment) Add(d time.Duration) Moment { return m + Moment(d) }

// Sub returns the time from o to m.
func (m Moment) Sub(o Moment) time.Duration { return time.Duration(m - o) }

const headerSize = 4

// ErrTooLong is matched by the error of Write for an unwritten message.
var ErrTooLong = errors.New("the message is too long")

// encode returns a message as a frame.
func encode(message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if len(body) > MaxFrame {
		return nil, fmt.Errorf("%w: it has %d bytes; at most %d are allowed", ErrTooLong, len(body), MaxFrame)
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, headerSize+len(body)), uint32(len(body))), body...), nil
}

// Write writes a message.
func Write(w io.Writer, message any) error {
	frame, err := encode(message)
	if err != nil {
		return err
	}
	_, err = w.Write(frame)
	return err
}

// WriteWithin writes a message within limit. The limit counts from when the message is
// encoded: a long one takes a while.
func WriteWithin(w interface {
	io.Writer
	SetWriteDeadline(t time.Time) error
}, message any, limit time.Duration) error {
	frame, err := encode(message)
	if err != nil {
		return err
	}
	_ = w.SetWriteDeadline(time.Now().Add(limit)) // fails if it is closed, as Write does
	_, err = w.Write(frame)
	return err
}

// Read reads a message into target.
func Read(r io.Reader, target any) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size > MaxFrame {
		return fmt.Errorf("a message of %d bytes was announced; at most %d are allowed", size, MaxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, target)
}
