package postgres

import (
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sessiontest"
)

func TestSessionConformsToContract(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	sessiontest.Run(t, func(t *testing.T) tenure.Backend {
		// Each case has its own database, since numeric keys are shared by the whole
		// database.
		return backendOn(t, server.Database(t), Config{})
	}, sessiontest.Registry, sessiontest.UniqueNames, sessiontest.Offers, sessiontest.LeaderNames)
}
