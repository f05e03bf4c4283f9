package service

import (
	"io"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// --health-interval alone is enough, as for programs that know no lease.
func TestHealthIntervalSetsLease(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  []string
		lease time.Duration
	}{
		{[]string{"--health-interval", "10.0"}, 30 * time.Second},
		{[]string{"--health-interval", "2"}, 10 * time.Second},
		{[]string{"--health-interval", "1"}, 0},
		{[]string{"--health-interval", "10.0", "--lease", "20s"}, 20 * time.Second},
		{[]string{"--refresh", "10.0"}, 0},
	} {
		var f NodeFlags
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		f.Register(flags, "warn")
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		config, err := f.Config(io.Discard)
		if err != nil || config.Lease != test.lease {
			t.Errorf("%v: lease %v, want %v; error %v", test.args, config.Lease, test.lease, err)
		}
	}
}
