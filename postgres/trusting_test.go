package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
)

// Another mode and a new installation know nothing of earlier terms. A node whose session
// ended without a record, as all do when the server crashes, may trust its terms until
// its lease is over.
func TestInstallationStaysWhileLostNodeMayTrustItsTerms(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const lease = 8 * time.Second // a busy machine must not miss it before the first change
	for name, change := range map[string]func(context.Context, *Backend) error{
		"change the mode": func(ctx context.Context, b *Backend) error { return b.SetMode(ctx, "leases") },
		"migrate down":    func(ctx context.Context, b *Backend) error { return b.MigrateDown(ctx, schema.Core, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			lost := open(t, b, func(o *peerOptions) { o.name, o.timing.Lease = "lost", lease })
			lost.Abort()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := change(ctx, b)
			if !errors.Is(err, dberr.ErrInstallationInUse) || !strings.Contains(err.Error(), `node "lost" on "localhost" for another`) {
				t.Fatalf("got error %v, want ErrInstallationInUse and the node", err)
			}
			eventually(t, b, "SELECT last_heartbeat + $1 * interval '1 s' < clock_timestamp() FROM {nodes}", lease.Seconds())
			if err := change(ctx, b); err != nil {
				t.Errorf("after its lease: %v", err)
			}
		})
	}
}
