package observer

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// escape moves the cursor, erases, or colors.
var escape = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// top returns the last frame of "tenure top" on a terminal of 200 columns and 50 lines that
// contains a text.
func (s *scene) top(text string) (frame string) {
	s.Helper()
	master, slave := s.terminal()
	defer master.Close()
	command := exec.Command(program("tenure"), "top", "--dsn", s.dsn)
	command.Env = append(environment(), "TERM=xterm", "NO_COLOR=1", "TZ=UTC")
	command.Stdin, command.Stdout, command.Stderr = slave, slave, slave
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := command.Start()
	_ = slave.Close() // the process has its own
	if err != nil {
		s.Fatal(err)
	}
	var mu sync.Mutex
	var written strings.Builder
	done := make(chan struct{})
	go func() { // exits when the process has closed the terminal; the end of this function waits
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			mu.Lock()
			written.Write(buffer[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	s.eventually("top shows "+text, func() bool {
		mu.Lock()
		defer mu.Unlock()
		shown := strings.ReplaceAll(escape.ReplaceAllString(written.String(), ""), "\r", "")
		at := strings.LastIndex(shown, "tenure top  roles")
		if at < 0 {
			return false
		}
		frame = shown[at:]
		return strings.Contains(frame, text) && strings.Contains(frame, "q quit")
	})
	_, _ = master.WriteString("q")
	end := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
	_ = command.Wait() // its exit code is not the matter here
	end.Stop()
	<-done
	return frame
}

// terminal returns both ends of a new terminal.
func (s *scene) terminal() (master, slave *os.File) {
	s.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		s.Fatal(err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		s.Fatal(err)
	}
	return master, slave
}
