// Package netns makes network namespaces, so that tests can cut one process off
// from others: no packet arrives, and no end of a connection is announced. It
// needs Linux, root, and the program ip.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// ErrUnavailable matches the error of [New] on a machine where namespaces cannot
// be made.
var ErrUnavailable = errors.New("network namespaces need root and the program ip (Debian: apt-get install iproute2)")

// deadMAC belongs to no host: what is sent to it is lost without an error.
const deadMAC = "02:00:00:00:00:01"

// Network is a bridge of this machine with namespaces behind it. Each has one
// address.
type Network struct {
	prefix    string // of the names of namespaces and interfaces
	subnet    string // as in "10.213.90."
	caretaker *sandbox.Caretaker
}

var networks atomic.Int64 // of this process

// New makes a network. [Network.Close] removes it, and so does the end of this
// process; what is left of a process that was killed together with its caretaker,
// New removes.
func New(ctx context.Context, namespaces int) (*Network, error) {
	if _, err := exec.LookPath("ip"); err != nil || os.Getuid() != 0 {
		return nil, ErrUnavailable
	}
	if err := sweep(ctx); err != nil {
		return nil, err
	}
	serial := networks.Add(1) - 1
	id := (int64(os.Getpid()) + serial*4099) % (1 << 14) // several on one machine must not meet
	n := &Network{
		prefix: fmt.Sprintf("tn%d%c", os.Getpid(), 'a'+rune(serial%26)),
		subnet: fmt.Sprintf("10.%d.%d.", 192+id>>8, id&255),
	}
	var err error
	if n.caretaker, err = sandbox.NewCaretaker("while read -r _; do :; done\n"+remove, n.prefix); err != nil {
		return nil, err
	}
	if err := n.build(ctx, namespaces); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Network) build(ctx context.Context, namespaces int) error {
	commands := []string{
		"link add " + n.bridge() + " type bridge",
		"addr add " + n.Host(0) + "/24 dev " + n.bridge(),
		"addr add " + n.Host(1) + "/24 dev " + n.bridge(),
		"link set " + n.bridge() + " up",
	}
	for i := range namespaces {
		space := n.namespace(i)
		commands = append(commands,
			"netns add "+space,
			"link add "+n.link(i)+" type veth peer name eth0 netns "+space,
			"link set "+n.link(i)+" master "+n.bridge(),
			"link set "+n.link(i)+" up",
			"-n "+space+" addr add "+n.Address(i)+"/24 dev eth0",
			"-n "+space+" link set eth0 up",
			"-n "+space+" link set lo up",
		)
	}
	for _, command := range commands {
		if err := ip(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// Close kills what runs in the namespaces and removes the network.
func (n *Network) Close() error { return n.caretaker.Close() }

func (n *Network) namespace(i int) string { return fmt.Sprintf("%s-%d", n.prefix, i+1) }
func (n *Network) link(i int) string      { return fmt.Sprintf("%sv%d", n.prefix, i+1) }
func (n *Network) bridge() string         { return n.prefix + "br" }

// Host returns address 0 or 1 of this machine in the network.
func (n *Network) Host(i int) string { return fmt.Sprintf("%s%d", n.subnet, 1+i) }

// Address returns the address of a namespace.
func (n *Network) Address(i int) string { return fmt.Sprintf("%s%d", n.subnet, 11+i) }

// CIDR returns the range of all addresses.
func (n *Network) CIDR() string { return n.subnet + "0/24" }

// Within returns the words that run a command in a namespace, to be put in front
// of it.
func (n *Network) Within(i int) []string { return []string{"ip", "netns", "exec", n.namespace(i)} }

// Isolate cuts a namespace off from everything.
func (n *Network) Isolate(ctx context.Context, i int) error {
	return ip(ctx, "link set "+n.link(i)+" down")
}

// Rejoin ends what [Network.Isolate] began.
func (n *Network) Rejoin(ctx context.Context, i int) error {
	return ip(ctx, "link set "+n.link(i)+" up")
}

// Lose makes a namespace's packets to an address vanish.
func (n *Network) Lose(ctx context.Context, i int, address string) error {
	return ip(ctx, fmt.Sprintf("-n %s neigh replace %s lladdr %s dev eth0 nud permanent", n.namespace(i), address, deadMAC))
}

// Find ends what [Network.Lose] began.
func (n *Network) Find(ctx context.Context, i int, address string) error {
	return ip(ctx, fmt.Sprintf("-n %s neigh del %s dev eth0", n.namespace(i), address))
}

// LoseFromHost makes the packets of this machine to a namespace vanish.
func (n *Network) LoseFromHost(ctx context.Context, i int) error {
	return ip(ctx, fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", n.Address(i), deadMAC, n.bridge()))
}

// FindFromHost ends what [Network.LoseFromHost] began.
func (n *Network) FindFromHost(ctx context.Context, i int) error {
	return ip(ctx, fmt.Sprintf("neigh del %s dev %s", n.Address(i), n.bridge()))
}

func ip(ctx context.Context, command string) error {
	out, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// remove removes the network with a prefix, and kills what lives in it: a process
// in a namespace would keep it.
const remove = `
for path in "/run/netns/$1"-*; do
	[ -e "$path" ] || continue
	space=${path##*/}
	tries=0
	while pids=$(ip netns pids "$space") && [ -n "$pids" ] && [ $tries -lt 50 ]; do
		kill -KILL $pids
		tries=$((tries + 1))
		sleep 0.1
	done
	ip link del "${1}v${space##*-}"
	ip netns del "$space"
done 2>/dev/null
[ ! -e "/sys/class/net/${1}br" ] || ip link del "${1}br"
`

// sweep removes the networks of processes that no longer live. Their caretaker
// does so, unless it was killed, too.
func sweep(ctx context.Context) error {
	bridges, _ := filepath.Glob("/sys/class/net/tn*br") // the pattern is well-formed
	for _, bridge := range bridges {
		prefix := strings.TrimSuffix(filepath.Base(bridge), "br")
		owner, err := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(prefix, "tn"), "abcdefghijklmnopqrstuvwxyz"))
		if err != nil {
			continue // not of this package
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", owner)); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if out, err := exec.CommandContext(ctx, "/bin/sh", "-c", remove, "remove", prefix).CombinedOutput(); err != nil {
			return fmt.Errorf("remove the network of process %d, which has ended: %w: %s", owner, err, out)
		}
	}
	return nil
}
