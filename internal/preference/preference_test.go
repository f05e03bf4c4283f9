package preference_test

import (
	"testing"

	"github.com/exactly-one/tenure/internal/preference"
)

func TestPriorityReadsIntegers(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "10": 10, "-3": -3, "2147483647": 2147483647} {
		if got, err := preference.Priority(map[string]string{preference.Label: text}); err != nil || got != want {
			t.Errorf("%q reads as %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "high", "1.5", "2147483648", " 1"} {
		if got, err := preference.Priority(map[string]string{preference.Label: text}); err == nil || got != 0 {
			t.Errorf("%q reads as %d", text, got)
		}
	}
	if got, err := preference.Priority(map[string]string{"zone": "a"}); err != nil || got != 0 {
		t.Errorf("without the label: %d, %v", got, err)
	}
}

func TestPriorityDecidesBeforeLabels(t *testing.T) {
	prefers := map[string]string{"zone": "a", "disk": "ssd"}
	ascending := []map[string]string{
		{preference.Label: "-1", "zone": "a", "disk": "ssd"},
		{"zone": "b"},
		{"zone": "a", "disk": "hdd"},
		{"zone": "a", "disk": "ssd"},
		{preference.Label: "1"},
	}
	for i, lower := range ascending {
		for j, higher := range ascending {
			got := preference.Of(lower, prefers).Compare(preference.Of(higher, prefers))
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v compared with %v: %d", lower, higher, got)
			}
		}
	}
}
