//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// deadMAC belongs to nobody: what is sent to it is lost without an error.
const deadMAC = "02:00:00:00:00:01"

// network joins the members, etcd and the nodes. With namespaces each member has a
// separate address in a separate namespace, behind one bridge. Without them all
// share the loopback address, and the members reach one another's PostgreSQL
// through proxies.
type network struct {
	namespaces bool
	prefix     string // of the names of namespaces and interfaces
	subnet     string // as in "10.213.90."
	keeper     *keeper
	proxies    []*faultwire.Proxy // of the members, without namespaces
}

// newNetwork makes the namespaces if the kernel lets it, or says why it does not.
func newNetwork(ctx context.Context, members int) (*network, error) {
	n := &network{prefix: fmt.Sprintf("tha%d", os.Getpid()), subnet: fmt.Sprintf("10.213.%d.", 90+os.Getpid()%100)}
	var err error
	if n.keeper, err = startKeeper(n.prefix, n.all(members)); err != nil {
		return nil, err
	}
	if err := n.build(ctx, members); err != nil {
		fmt.Printf("No network namespaces (%v): the replication links are cut by TCP proxies, and faults that need namespaces are left out.\n", err)
		return n, nil
	}
	n.namespaces = true
	return n, nil
}

func (n *network) all(members int) []string {
	var all []string
	for i := range members {
		all = append(all, n.namespace(i))
	}
	return all
}

func (n *network) namespace(i int) string { return fmt.Sprintf("%s-%d", n.prefix, i+1) }
func (n *network) link(i int) string      { return fmt.Sprintf("%sv%d", n.prefix, i+1) }
func (n *network) bridge() string         { return n.prefix + "br" }

// address is that of a member.
func (n *network) address(i int) string {
	if !n.namespaces {
		return sandbox.Host
	}
	return fmt.Sprintf("%s%d", n.subnet, 11+i)
}

// etcdAddress is not the address that nodes connect from, so that a member can
// be cut off from the one and not from the other.
func (n *network) etcdAddress() string {
	if !n.namespaces {
		return sandbox.Host
	}
	return n.subnet + "2"
}

func (n *network) build(ctx context.Context, members int) error {
	if os.Getuid() != 0 {
		return errors.New("they need root")
	}
	commands := []string{
		"link add " + n.bridge() + " type bridge",
		"addr add " + n.subnet + "1/24 dev " + n.bridge(),
		"addr add " + n.subnet + "2/24 dev " + n.bridge(),
		"link set " + n.bridge() + " up",
	}
	for i := range members {
		space := n.namespace(i)
		commands = append(commands,
			"netns add "+space,
			"link add "+n.link(i)+" type veth peer name eth0 netns "+space,
			"link set "+n.link(i)+" master "+n.bridge(),
			"link set "+n.link(i)+" up",
			fmt.Sprintf("-n %s addr add %s%d/24 dev eth0", space, n.subnet, 11+i),
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

// isolate cuts a member off from everything.
func (n *network) isolate(ctx context.Context, i int) error {
	return ip(ctx, "link set "+n.link(i)+" down")
}

func (n *network) join(ctx context.Context, i int) error {
	return ip(ctx, "link set "+n.link(i)+" up")
}

// cutFromMembers loses all packets between a member and the others.
func (n *network) cutFromMembers(ctx context.Context, i, members int) error {
	if !n.namespaces {
		n.proxies[i].Stall()
		return nil
	}
	for other := range members {
		if other == i {
			continue
		}
		if err := errors.Join(n.lose(ctx, i, n.address(other)), n.lose(ctx, other, n.address(i))); err != nil {
			return err
		}
	}
	return nil
}

func (n *network) joinMembers(ctx context.Context, i, members int) error {
	if !n.namespaces {
		n.proxies[i].Resume()
		return nil
	}
	var failed error
	for other := range members {
		if other != i {
			failed = errors.Join(failed, n.find(ctx, i, n.address(other)), n.find(ctx, other, n.address(i)))
		}
	}
	return failed
}

// lose makes a member's packets to an address vanish.
func (n *network) lose(ctx context.Context, i int, address string) error {
	return ip(ctx, fmt.Sprintf("-n %s neigh replace %s lladdr %s dev eth0 nud permanent", n.namespace(i), address, deadMAC))
}

func (n *network) find(ctx context.Context, i int, address string) error {
	return ip(ctx, fmt.Sprintf("-n %s neigh del %s dev eth0", n.namespace(i), address))
}

func (n *network) close() {
	for _, proxy := range n.proxies {
		_ = proxy.Close() // it no longer listens, and nothing else is needed
	}
	n.keeper.end()
}

func ip(ctx context.Context, command string) error {
	out, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// keeperScript waits until the owner closes its standard input or dies. Then it
// kills the processes that the owner has stopped, since a stopped process obeys no
// other signal, and all that lives in the namespaces, and removes them.
const keeperScript = `
prefix=$1; shift
stopped=
while read -r word rest; do stopped=$rest; done
[ -z "$stopped" ] || kill -KILL $stopped
for space; do
	[ -e "/run/netns/$space" ] || continue
	tries=0
	while pids=$(ip netns pids "$space") && [ -n "$pids" ] && [ $tries -lt 50 ]; do
		kill -KILL $pids
		tries=$((tries + 1))
		sleep 0.1
	done
	ip link del "${prefix}v${space##*-}"
	ip netns del "$space"
done 2>/dev/null
[ ! -e "/sys/class/net/${prefix}br" ] || ip link del "${prefix}br"
`

// keeper cleans up after the program, however it ends.
type keeper struct {
	process *exec.Cmd
	stdin   io.WriteCloser
}

func startKeeper(prefix string, namespaces []string) (*keeper, error) {
	k := &keeper{process: exec.Command("/bin/sh", append([]string{"-c", keeperScript, "keeper", prefix}, namespaces...)...)}
	k.process.Dir = "/"
	k.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt at the terminal does not reach it
	var err error
	if k.stdin, err = k.process.StdinPipe(); err != nil {
		return nil, err
	}
	return k, k.process.Start()
}

// stopped notes the processes that are stopped just now.
func (k *keeper) stopped(pids []int) {
	_, _ = fmt.Fprintln(k.stdin, "stopped", strings.Trim(fmt.Sprint(pids), "[]")) // if the keeper is gone, the run continues
}

func (k *keeper) end() {
	_ = k.stdin.Close()
	_ = k.process.Wait()
}
