package cluster

import (
	"context"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
)

// LocalNode returns a member's description of this process: the configuration, the host
// name, and defaults for missing settings. Its status is joining and it has no id until
// [Join].
func LocalNode(config Config) NodeInfo {
	hostname, _ := os.Hostname() // empty if it is unknown
	node := NodeInfo{
		Hostname: hostname, Address: config.Address, HTTPPort: config.HTTPPort, GRPCPort: config.GRPCPort,
		Roles: slices.Clone(config.Roles), Capabilities: slices.Clone(config.Capabilities), Labels: config.Labels,
		Version: config.Version, Status: Joining,
	}
	if node.Address == "" {
		node.Address = localAddress()
	}
	if len(node.Roles) == 0 {
		node.Roles = NodeRoles()
	}
	if node.Version == "" {
		node.Version = buildVersion()
	}
	return node
}

// description returns the node's description for the registry.
func (n NodeInfo) description() tenure.Description {
	d := tenure.Description{
		Status: n.Status, Drained: n.Drained, Address: n.Address, HTTPPort: n.HTTPPort, GRPCPort: n.GRPCPort,
		Capabilities: n.Capabilities, Labels: n.Labels, Version: n.Version, Spreads: n.Spreads,
	}
	for _, role := range n.Roles {
		d.Roles = append(d.Roles, string(role))
	}
	return d
}

// localAddress returns this machine's address for outgoing connections, or else one of its
// addresses, or "" if it has none.
func localAddress() string {
	for _, remote := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // reserved for documentation
		if address := addressToward(remote); address != "" {
			return address
		}
	}
	addresses, _ := net.InterfaceAddrs() // treat an error like a machine without addresses
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return ""
}

// addressToward returns the local address for connections to remote. Connecting
// a datagram socket sends nothing.
func addressToward(remote string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "udp", remote)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	if local, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		return local.IP.String()
	}
	return ""
}

func buildVersion() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		return build.Main.Version
	}
	return ""
}
