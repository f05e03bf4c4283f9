//go:build unix

package guardian

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// sendTimeout limits sending a message. The buffer holds hundreds of messages,
// so if a message must wait, the receiver does not read.
const sendTimeout = 250 * time.Millisecond

// maxMessage is the maximum size of the first message, which carries the anchor.
const maxMessage = 4096

// order is a message from the supervisor to the guardian. Moments are readings of [now].
type order struct {
	Begin    *limits        `json:"begin,omitempty"`    // start the command; always the first
	Deadline moment         `json:"deadline,omitempty"` // trust now ends at this moment
	Signal   syscall.Signal `json:"signal,omitempty"`   // forward this signal
	Stop     syscall.Signal `json:"stop,omitempty"`     // end the command gracefully, with this signal first
	Within   time.Duration  `json:"within,omitempty"`   // with Stop: from the request to the kill
	Kill     bool           `json:"kill,omitempty"`     // kill everything
}

// limits are the durations that a guardian observes.
type limits struct {
	Grace    time.Duration `json:"grace"`    // from the request to end to the end of trust
	Lead     time.Duration `json:"lead"`     // from the kill to the end of trust
	Deadline moment        `json:"deadline"` // when trust ends, unless an order changes it
}

// report is a message from the guardian to the supervisor.
type report struct {
	Begins bool   `json:"begins,omitempty"` // the guardian starts the command now
	PID    int    `json:"pid,omitempty"`    // the command has started
	Failed string `json:"failed,omitempty"` // why the command has not started; the guardian then exits
	Gone   *end   `json:"gone,omitempty"`   // the command and all its descendants have ended; the guardian then exits
}

// end is how a command ended.
type end struct {
	Code    int  `json:"code"`    // its exit code, or 128 + the signal of its death
	Stopped bool `json:"stopped"` // the guardian had asked it to end or killed it
}

// socketPair returns the two ends of a connection between two processes.
func socketPair() (near *net.UnixConn, far *os.File, err error) {
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	far = os.NewFile(uintptr(pair[1]), "control")
	near, err = connection(os.NewFile(uintptr(pair[0]), "control"))
	if err != nil {
		return nil, nil, errors.Join(err, far.Close())
	}
	return near, far, nil
}

// connection converts a file to a network connection and closes the file.
func connection(file *os.File) (*net.UnixConn, error) {
	conn, failure := net.FileConn(file)
	if err := errors.Join(failure, file.Close()); err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a unix socket"), conn.Close())
	}
	return unix, nil
}

// send writes one message.
func send(conn *net.UnixConn, message any) error {
	line, err := encode(conn, message)
	if err != nil {
		return err
	}
	_, err = conn.Write(line)
	return err
}

func encode(conn *net.UnixConn, message any) ([]byte, error) {
	line, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), conn.SetWriteDeadline(time.Now().Add(sendTimeout))
}

// sendWithAnchor writes the first message with a duplicate of the anchor, if there is
// one. It does not change the anchor's blocking mode, common to all duplicates.
func sendWithAnchor(conn *net.UnixConn, message any, anchor syscall.RawConn) error {
	if anchor == nil {
		return send(conn, message)
	}
	line, err := encode(conn, message)
	if err != nil {
		return err
	}
	var failure error
	err = anchor.Control(func(fd uintptr) {
		_, _, failure = conn.WriteMsgUnix(line, syscall.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, failure)
}

// receiveFirst reads the first message and returns the decoder for the messages after it.
// The message's descriptor stays open until the process exits.
func receiveFirst(conn *net.UnixConn) (limits, *json.Decoder, error) {
	data, rights := make([]byte, maxMessage), make([]byte, syscall.CmsgSpace(4))
	n, nRights, _, _, err := conn.ReadMsgUnix(data, rights) // sets close-on-exec
	if err == nil && nRights > 0 {
		_, err = syscall.ParseSocketControlMessage(rights[:nRights])
	}
	if err != nil {
		return limits{}, nil, err
	}
	decoder := json.NewDecoder(io.MultiReader(bytes.NewReader(data[:n]), conn))
	var first order
	if err := decoder.Decode(&first); err != nil {
		return limits{}, nil, err
	}
	if first.Begin == nil {
		return limits{}, nil, errors.New("the first message is not an order to begin")
	}
	return *first.Begin, decoder, nil
}

// receive passes each message to the channel until the connection ends or
// fails, and then closes the channel.
func receive[T any](decoder *json.Decoder, messages chan<- T) {
	defer close(messages)
	for {
		var message T
		if decoder.Decode(&message) != nil {
			return
		}
		messages <- message
	}
}
