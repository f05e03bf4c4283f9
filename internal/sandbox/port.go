package sandbox

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Host is the loopback address that servers listen on.
const Host = "127.0.0.1"

// Ports are taken from below the range that systems give to outgoing
// connections, or such a connection could take a server's port while the server
// restarts.
const firstPort, ports = 15000, 15000

// A process takes ports from blocks that belong to it alone: it listens on the
// first port of each for as long as it runs. A block is used again only after
// maxBlocks of them, so that a port is not given to a second server while the
// first one restarts.
const blockSize, maxBlocks = 100, 20

var reserved struct {
	sync.Mutex
	blocks []net.Listener
	given  int // ports taken so far from these blocks
}

// FreePort returns a port that no process listens on and that no other caller gets,
// neither in this process nor in another one.
func FreePort() (int, error) {
	reserved.Lock()
	defer reserved.Unlock()
	for range maxBlocks * blockSize {
		at := reserved.given % (maxBlocks * blockSize)
		if len(reserved.blocks) <= at/blockSize && !reserveBlock() {
			if len(reserved.blocks) == 0 {
				break
			}
			at = 0
		}
		reserved.given = at + 1
		port := portOf(reserved.blocks[at/blockSize]) + at%blockSize
		if TryPort(port) == nil { // the first of a block never is
			return port, nil
		}
	}
	return 0, errors.New("no free port found")
}

// reserveBlock takes a block that no process has, if there is one.
func reserveBlock() bool {
	const blocks = ports / blockSize
	start := rand.IntN(blocks)
	for i := range blocks {
		port := firstPort + (start+i)%blocks*blockSize
		if listener, err := listen(port); err == nil {
			reserved.blocks = append(reserved.blocks, listener)
			return true
		}
	}
	return false
}

func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

// TryPort returns an error if a process listens on a port.
func TryPort(port int) error {
	listener, err := listen(port)
	if err != nil {
		return err
	}
	return listener.Close()
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(Host, strconv.Itoa(port)))
}
