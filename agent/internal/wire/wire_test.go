package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

func TestRolesSurviveTheWire(t *testing.T) {
	t.Parallel()
	for _, role := range []tenure.Role{
		tenure.NamedRole("r"), tenure.NamedRole("key:7"), tenure.NamedRole("r").WithKey(-7), tenure.NamedRole("ü<&>"),
		tenure.KeyRole(7), tenure.KeyRole(-1 << 63), tenure.KeyPairRole(0, 7), tenure.KeyPairRole(-1<<31, 1<<31-1),
	} {
		var sent bytes.Buffer
		var got Role
		if err := errors.Join(Write(&sent, NewRole(role)), Read(&sent, &got)); err != nil {
			t.Fatal(err)
		}
		if decoded, err := got.Decode(); err != nil || decoded != role {
			t.Errorf("%v: got %+v, error %v", role, decoded, err)
		}
	}
	if _, err := (Role{Name: "a\nb"}).Decode(); !errors.Is(err, tenure.ErrInvalidRole) {
		t.Errorf("a control character: got error %v, want ErrInvalidRole", err)
	}
}

func TestErrorsKeepWhatTheyMatch(t *testing.T) {
	t.Parallel()
	for name, sentinel := range sentinels {
		err := NewError(fmt.Errorf("doing it: %w", sentinel)).Decode()
		if !errors.Is(err, sentinel) || !errors.Is(err, tenure.ErrTenure) || !strings.HasPrefix(err.Error(), "doing it: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := NewError(tenure.ErrNoLeader).Decode(); errors.Is(err, tenure.ErrSessionLost) {
		t.Errorf("%v matches an error that it is not", err)
	}
	if err := NewError(nil).Decode(); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// slowMessage takes a while to encode.
type slowMessage struct{ takes time.Duration }

func (m slowMessage) MarshalJSON() ([]byte, error) {
	time.Sleep(m.takes)
	return []byte(`"message"`), nil
}

// On a busy machine a long message takes seconds to encode. The connection is not at fault.
func TestLimitOfWriteDoesNotCountEncoding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			if WriteWithin(near, slowMessage{2 * time.Second}, time.Second) != nil {
				near.Close()
			}
		}()
		var got string
		if err := Read(far, &got); err != nil || got != "message" {
			t.Errorf("got %q and the error %v; want the message", got, err)
		}
		started := time.Now()
		if err := WriteWithin(near, slowMessage{}, time.Second); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(started) != time.Second {
			t.Errorf("without a reader: error %v after %s; want a deadline exceeded after 1s", err, time.Since(started))
		}
	})
}

func TestFramesAreLimited(t *testing.T) {
	t.Parallel()
	var sent bytes.Buffer
	if err := Write(&sent, strings.Repeat("x", MaxFrame)); err == nil || sent.Len() > 0 {
		t.Errorf("a message that is too long: error %v, %d bytes sent", err, sent.Len())
	}
	var got any
	if err := Read(bytes.NewReader(binary.BigEndian.AppendUint32(nil, MaxFrame+1)), &got); err == nil {
		t.Error("a frame that is too long was accepted")
	}
	if err := Read(bytes.NewReader([]byte{0, 0, 0, 9, '{'}), &got); err == nil {
		t.Error("half a frame was accepted")
	}
}
