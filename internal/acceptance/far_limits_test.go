package acceptance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// farLimits are the fixed limits of the library on what crosses the network to the
// database: the line of the code, the limit, and the most round trips that must fit. It
// harms from limit/trips on. Not listed are limits that only the server measures, as
// statement_timeout, and pauses.
//
// A connection takes 9 round trips, with TLS 1.3, SCRAM and an address translation; a call
// of the reader takes 2 more on its first use, and its statement.
var farLimits = []struct {
	file, line string
	limit      time.Duration
	trips      int
	harm       string // why it may harm below the supported round trip; otherwise empty
}{
	{"internal/openlimit/openlimit.go", "Session             = Rule{Least: 10 * time.Second", 10 * time.Second, 15, ""},
	{"internal/openlimit/openlimit.go", "Connection          = Rule{Least: 5 * time.Second", 5 * time.Second, 9, ""},
	{"internal/openlimit/openlimit.go", "ConnectionOfSeveral = Rule{Least: 3 * time.Second", 3 * time.Second, 9, ""},
	{"internal/pgdial/hosts.go", "const stagger = 200 * time.Millisecond", 200 * time.Millisecond, 9, "the next host is tried too, and the later connection is closed"},
	{"config.go", "c.Lease = cmp.Or(c.Lease, 10*time.Second)", 9 * time.Second, 1, ""}, // less the margin; a shorter lease is a setting
	{"postgres/internal/link/settings.go", "const AskTimeout = 30 * time.Second", 30 * time.Second, 12, ""},
	{"postgres/internal/records/offers.go", "offerTimeout = 4 * time.Second", 4 * time.Second, 12, ""},
	{"postgres/internal/records/offers.go", "context.WithTimeout(context.WithoutCancel(ctx), time.Second)", time.Second, 2, ""},
	{"postgres/ring.go", "const callTimeout = 5 * time.Second", 5 * time.Second, 3, ""},
	{"postgres/internal/link/connect.go", "const CloseTimeout = 2 * time.Second", 2 * time.Second, 1, ""},
	{"postgres/fencing.go", "fenceTimeout = 10 * time.Second", 10 * time.Second, 25, ""},
	{"postgres/fencing.go", "waitTimeout = 500 * time.Millisecond", 500 * time.Millisecond, 1, ""},
	{"postgres/internal/install/installation.go", "installationWait  = 3 * time.Second", 3 * time.Second, 1, ""}, // it grows with the round trip
	{"postgres/watch_waking.go", "limit := time.NewTimer(time.Second)", time.Second, 1, ""},
	{"cluster/drain.go", "const publishTimeout = time.Second", time.Second, 2, ""},
	{"cluster/drain_successors.go", "min(interval, time.Second)", time.Second, 1, ""},
	{"cluster/watch.go", "max(interval, time.Second)", 5 * time.Second, 12, ""}, // the interval is 5 s by default
	{"cluster/heartbeat.go", "const markTimeout = 5 * time.Second", 5 * time.Second, 12, ""},
	{"observe.go", "max(o.interval, time.Second)", 5 * time.Second, 12, ""}, // as above
	{"prefer.go", "max(n.cfg.CheckInterval, time.Second)", 5 * time.Second, 12, ""},
	{"cron/failures.go", "const recordTimeout = 5 * time.Second", 5 * time.Second, 13, ""},
	{"cron/work.go", "const statementTimeout = 30 * time.Second", 30 * time.Second, 13, ""},
	{"processor/admin.go", "statementTimeout = 30 * time.Second", 30 * time.Second, 13, ""},
	{"internal/leaderwatch/watch.go", "readTimeout  = 5 * time.Second", 5 * time.Second, 12, ""},
	{"internal/program/database/postgres.go", "const connectTimeout = 5 * time.Second", 5 * time.Second, 9, ""},
}

// No fixed limit harms up to the longest round trip of TestFarServer.
func TestFixedLimitsAllowFarServers(t *testing.T) {
	t.Parallel()
	longest := farTrips[len(farTrips)-1]
	for _, l := range farLimits {
		text, err := os.ReadFile(filepath.Join("..", "..", l.file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), l.line) {
			t.Errorf("%s lacks %q: write its limit here", l.file, l.line)
		}
		if from := l.limit / time.Duration(l.trips); (from < longest) != (l.harm != "") {
			t.Errorf("%s, %q: it harms from a round trip of %v; supported are %v; the reason why that is right: %q", l.file, l.line, from, longest, l.harm)
		}
	}
}
