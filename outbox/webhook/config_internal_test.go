package webhook

import (
	"strings"
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

// The rest of a password that is not escaped would be a part of the path, which errors show.
func TestUnescapedPasswordIsRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"https://u:p@SSSS/SSSS@h/x", "https://u:p@SSSS?SSSS@h/x", "https://u:p@SSSS#SSSS@h/x"} {
		_, _, err := Config{Name: "w", Source: "/s", URL: address}.withDefaults()
		if err == nil || !strings.Contains(err.Error(), "escape the password") || strings.Contains(err.Error(), "SSSS") {
			t.Errorf("%s: %v, want an error with \"escape the password\" and no part of it", address, err)
		}
	}
	for _, address := range []string{"https://u:p%40%2F@h/x", "https://h/@x"} {
		if _, _, err := (Config{Name: "w", Source: "/s", URL: address}).withDefaults(); err != nil {
			t.Errorf("%s: %v, want no error", address, err)
		}
	}
}
