package webhook

import (
	"testing"
	"time"
)

func TestZeroConfigGetsDocumentedLimits(t *testing.T) {
	t.Parallel()
	c, _, err := Config{Name: "w", Source: "/s", URL: "https://example.com"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if c.Timeout != 10*time.Second {
		t.Errorf("the timeout is %v, want 10s", c.Timeout)
	}
	if c.MaxBody != 2*1024*1024 {
		t.Errorf("the largest body has %d bytes, want 2 MiB", c.MaxBody)
	}
	if c.MaxRetryAfter != 10*time.Minute {
		t.Errorf("the longest Retry-After is %v, want 10m0s", c.MaxRetryAfter)
	}
}
