package cluster

import "testing"

func TestRolesColumnMarksLeaders(t *testing.T) {
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
