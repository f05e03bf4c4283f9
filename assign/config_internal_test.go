package assign

import (
	"testing"
	"time"
)

func TestZeroConfigGetsDocumentedLimits(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	if c.PollInterval != time.Second {
		t.Errorf("the poll interval is %v, want 1s", c.PollInterval)
	}
	if c.MaxPerNode != 100 {
		t.Errorf("a node has at most %d rows, want 100", c.MaxPerNode)
	}
}
