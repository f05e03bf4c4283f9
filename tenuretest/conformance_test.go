package tenuretest_test

import (
	"testing"
	"testing/synctest"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sessiontest"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestDatabaseConformsToBackend(t *testing.T) {
	newDatabase := func(*testing.T) tenure.Backend { return tenuretest.NewDatabase() }
	features := []sessiontest.Feature{sessiontest.Registry, sessiontest.UniqueNames, sessiontest.Offers, sessiontest.LeaderNames}
	t.Run("in a bubble", func(t *testing.T) { sessiontest.RunIn(t, synctest.Test, newDatabase, features...) })
	t.Run("in real time", func(t *testing.T) {
		pgtest.Long(t)
		sessiontest.Run(t, newDatabase, features...)
	})
}
