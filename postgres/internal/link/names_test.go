package link

import (
	"strings"
	"testing"
)

func TestChannelDependsOnSchemaAndPrefix(t *testing.T) {
	if got := NewNames("public", "tenure_", "app").ElectionsChannel(); got != "public_tenure_" {
		t.Errorf("channel %q, want public_tenure_", got)
	}
	long := NewNames(strings.Repeat("s", 63), "tenure_", "app").ElectionsChannel()
	other := NewNames(strings.Repeat("s", 62)+"t", "tenure_", "app").ElectionsChannel()
	if len(long) > 63 || long == other {
		t.Errorf("channels %q and %q; want them short and distinct", long, other)
	}
}

// The ends distinguish nodes with long names, and the last words their connections.
func TestApplicationNameFitsItsLimit(t *testing.T) {
	const long = "billing-worker-in-a-very-long-named-datacenter-eu-central-1-rack-3"
	for _, c := range [][3]string{
		{"tenure", "api-1 session", "tenure api-1 session"},
		{strings.Repeat("a", 60), "session", strings.Repeat("a", 29) + ".." + strings.Repeat("a", 24) + " session"},
		{"tenure", long + " session", "tenure billing-worker-in-a-ve..nter-eu-central-1-rack-3 session"},
		{"tenure", long + " watch", "tenure billing-worker-in-a-very..nter-eu-central-1-rack-3 watch"},
		{"tenure", strings.Repeat("é", 40) + " watch", "tenure " + strings.Repeat("é", 12) + ".." + strings.Repeat("é", 12) + " watch"},
	} {
		got := ApplicationName(c[0], c[1])
		if got != c[2] || len(got) > maxApplicationName {
			t.Errorf("%q, %q: %q of %d bytes, want %q", c[0], c[1], got, len(got), c[2])
		}
	}
}
