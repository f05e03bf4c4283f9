package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/schema"
)

// Another mode and a new installation know nothing of earlier terms. A node whose session
// ended without a record, as all do when the server crashes, may trust its terms until
// its lease is over.
func TestInstallationStaysWhileLostNodeMayTrustItsTerms(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(context.Context, *Backend) error{
		"change the mode": func(ctx context.Context, b *Backend) error { return b.SetMode(ctx, "leases") },
		"migrate down":    func(ctx context.Context, b *Backend) error { return b.MigrateDown(ctx, schema.Core, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			lost := open(t, b, lasting, func(o *peerOptions) { o.name = "lost" })
			lost.Abort()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := change(ctx, b)
			if !errors.Is(err, dberr.ErrInstallationInUse) || !strings.Contains(err.Error(), `node "lost" on "localhost" for another`) {
				t.Fatalf("got error %v, want ErrInstallationInUse and the node", err)
			}
			exec(t, b, `UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '1 minute'`)
			if err := change(ctx, b); err != nil {
				t.Errorf("after its lease: %v", err)
			}
		})
	}
}
