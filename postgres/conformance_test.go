package postgres

import (
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sessiontest"
)

func TestSession(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	sessiontest.Run(t, func(t *testing.T) tenure.Backend {
		// A database each: keys that are numbers are the database's.
		return backendOn(t, server.Database(t), Config{})
	}, sessiontest.Registry, sessiontest.UniqueNames)
}
