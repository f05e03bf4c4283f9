package cluster

import (
	"testing"
	"time"
)

func TestRolesColumn(t *testing.T) {
	for want, test := range map[string][2][]string{
		"":                           {nil, nil},
		"gateway, scheduler*":        {{"gateway", "scheduler"}, {"scheduler"}},
		"worker, a*, b*":             {{"worker"}, {"a", "b"}},
		"a*, b*, c*, d*, e*":         {nil, {"a", "b", "c", "d", "e"}},
		"w, a*, b*, c*, d*, 2 more*": {{"w"}, {"a", "b", "c", "d", "e", "f"}},
	} {
		if got := rolesColumn(test[0], test[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59*time.Second + 999*time.Millisecond: "59s", 62 * time.Second: "1m2s",
		time.Hour + 59*time.Second: "1h0m", 76 * time.Hour: "3d4h",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
