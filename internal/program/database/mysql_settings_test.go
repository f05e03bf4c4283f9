package database

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/mariatest"
)

// Nodes elect whatever a server of MariaDB sets for its connections.
func TestMySQLSettingsDoNotPreventElections(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"autocommit":    "SET GLOBAL autocommit = 0",
		"safe updates":  "SET GLOBAL sql_safe_updates = 1",
		"ANSI":          "SET GLOBAL sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'",
		"time zone":     "SET GLOBAL time_zone = '+05:30'",
		"isolation":     "SET GLOBAL tx_isolation = 'SERIALIZABLE'",
		"character set": "SET GLOBAL character_set_server = latin1; SET GLOBAL character_set_client = latin1; SET GLOBAL character_set_connection = latin1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mariatest.Start(t, mariatest.Options{})
			target := parse(t, server.URL(server.Database(t)))
			server.Execute(t, set)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			first, second := elect(ctx, t, target), elect(ctx, t, target)
			term, err := first.Campaign(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := term.Resign(ctx); err != nil {
				t.Fatal(err)
			}
			next, err := second.Campaign(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if next.Number() <= term.Number() {
				t.Errorf("term %d follows term %d", next.Number(), term.Number())
			}
			if err := next.Resign(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
