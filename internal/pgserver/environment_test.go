package pgserver

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

func TestEnvironmentIsAdded(t *testing.T) {
	t.Parallel()
	server := start(t, newSandbox(t), Options{Environment: []string{"TENURE_ADDED=to the server"}})
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", server.PID()))
	if err != nil {
		t.Skip("NOT TESTED: the environment of a process cannot be read here:", err)
	}
	for _, want := range []string{"TENURE_ADDED=to the server", "LC_ALL=C"} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("the environment %q lacks %s", content, want)
		}
	}
}
