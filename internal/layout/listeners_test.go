package layout

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listeners are the files that accept connections, with the tests of who may do what
// there, or why others cannot connect.
var listeners = map[string]string{
	"agent/server/socket_linux.go":         "TestEveryCallAsEverybody",
	"internal/program/sidecar/listener.go": "TestEveryRouteOfCommandsAsEverybody TestEveryRequestThroughProxyAsEverybody TestEveryConnectionThroughProxyAsEverybody",
	"examples/service/main.go":             "an example on the loopback interface",
	"lab/chaos/receiver.go":                "for tests",
	"internal/hostile/server.go":           "for tests",
	"internal/faultwire/proxy.go":          "for tests",
	"lab/oidcprovider/main.go":             "for tests",
	"internal/pgtest/slow.go":              "for tests",
	"internal/sandbox/port.go":             "for tests",
}

var listening = regexp.MustCompile(`\bnet\.(Listen\w*\(|ListenConfig\b)|\bhttp\.ListenAndServe`)

// A door that is in no row is one whose callers no test tries.
func TestEveryListenerHasATableOfCallers(t *testing.T) {
	t.Parallel()
	found, tests := map[string]bool{}, map[string]bool{}
	walk(t, ".go", func(path string) error {
		content, err := os.ReadFile(path)
		name := strings.TrimPrefix(path, root+"/")
		switch {
		case !strings.HasSuffix(path, "_test.go"):
			found[name] = found[name] || listening.Match(content)
		default:
			for _, declared := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(content, -1) {
				tests[string(declared[1])] = true
			}
		}
		return err
	})
	maps.DeleteFunc(found, func(_ string, listens bool) bool { return !listens })
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(listeners)); !slices.Equal(got, want) {
		t.Errorf("these files accept connections: %v; the rows are of %v: assert who may do what there", got, want)
	}
	for file, row := range listeners {
		for _, test := range testName.FindAllString(row, -1) {
			if !tests[test] {
				t.Errorf("%s: there is no test %s", file, test)
			}
		}
	}
}
