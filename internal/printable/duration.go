package printable

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Duration formats how long something took, with about three digits, as the dashboard's page
// does: "29.1 ms", "24.6 s", "1 min 5 s".
func Duration(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return strconv.FormatFloat(math.Round(d.Seconds()*1e4)/10, 'f', -1, 64) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return Age(d)
	}
}

// Age formats for how long something has lasted, in its two largest units, at most to the
// second: "41 s", "2 min 3 s", "2 min".
func Age(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, unit := range units[:len(units)-1] {
		if d < unit.size {
			continue
		}
		text := fmt.Sprintf("%d %s", d/unit.size, unit.name)
		if rest := d % unit.size / units[i+1].size; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, units[i+1].name)
		}
		return text
	}
	return fmt.Sprintf("%d s", max(0, d)/time.Second)
}
