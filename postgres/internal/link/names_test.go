package link

import (
	"strings"
	"testing"
)

func TestChannelDependsOnSchemaAndPrefix(t *testing.T) {
	if got := NewNames("public", "tenure_").ElectionsChannel(); got != "public_tenure_" {
		t.Errorf("channel %q, want public_tenure_", got)
	}
	long := NewNames(strings.Repeat("s", 63), "tenure_").ElectionsChannel()
	other := NewNames(strings.Repeat("s", 62)+"t", "tenure_").ElectionsChannel()
	if len(long) > 63 || long == other {
		t.Errorf("channels %q and %q; want them short and distinct", long, other)
	}
}

func TestApplicationNameFitsItsLimit(t *testing.T) {
	for _, c := range [][3]string{
		{"tenure", "api-1 session", "tenure api-1 session"},
		{strings.Repeat("a", 60), "session", strings.Repeat("a", 55) + " session"},
	} {
		if got := ApplicationName(c[0], c[1]); got != c[2] {
			t.Errorf("%q, %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
