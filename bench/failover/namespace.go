package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// The network namespace in which the leader of the network-cut scenario lives,
// joined to this one by a pair of virtual interfaces.
const (
	namespace        = "tenure-bench"
	namespaceNetwork = "10.213.77.0/30"
	hostAddress      = "10.213.77.1"
	hostLink         = "tenure-b0"
	innerLink        = "tenure-b1"
)

func makeNamespace(ctx context.Context) (remove func(), err error) {
	if os.Getuid() != 0 {
		return nil, errors.New("network namespaces need root")
	}
	remove = func() {
		_ = ip(context.Background(), "link", "del", hostLink)
		_ = ip(context.Background(), "netns", "del", namespace)
	}
	remove() // of a run that was killed
	for _, command := range []string{
		"netns add " + namespace,
		"link add " + hostLink + " type veth peer name " + innerLink + " netns " + namespace,
		"addr add " + hostAddress + "/30 dev " + hostLink,
		"link set " + hostLink + " up",
		"-n " + namespace + " addr add 10.213.77.2/30 dev " + innerLink,
		"-n " + namespace + " link set " + innerLink + " up",
		"-n " + namespace + " link set lo up",
	} {
		if err := ip(ctx, strings.Fields(command)...); err != nil {
			remove()
			return nil, err
		}
	}
	return remove, nil
}

// cut drops everything between the namespaces without a word to either side.
func cut(ctx context.Context) error {
	return ip(ctx, "-n", namespace, "link", "set", innerLink, "down")
}

func mend(ctx context.Context) error { return ip(ctx, "-n", namespace, "link", "set", innerLink, "up") }

func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func throughNamespace(port int) string {
	return fmt.Sprintf("postgres://postgres@%s:%d/postgres", hostAddress, port)
}
