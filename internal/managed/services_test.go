//go:build unix

package managed_test

import (
	"fmt"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// service is what is known of the settings of a managed service. The user app is
// what the service gives its customer: without superuser, in the service's role.
type service struct {
	name       string
	settings   map[string]string
	statements []string
}

// The services, as their documentation describes them; docs/howto/managed-servers.md has the
// sources. All are used over TLS and with SCRAM.
var services = []service{
	{"Amazon RDS",
		map[string]string{"rds.force_ssl": "1", "idle_in_transaction_session_timeout": "86400000", "password_encryption": "scram-sha-256"},
		[]string{
			"CREATE ROLE rds_superuser NOLOGIN", "GRANT pg_monitor, pg_signal_backend TO rds_superuser WITH ADMIN OPTION",
			"ALTER ROLE app CREATEDB CREATEROLE NOREPLICATION VALID UNTIL 'infinity'", "GRANT rds_superuser TO app",
		}},
	{"Amazon Aurora",
		map[string]string{"rds.force_ssl": "1", "idle_in_transaction_session_timeout": "86400000", "synchronous_commit": "on"},
		[]string{
			"CREATE ROLE rds_superuser NOLOGIN", "GRANT pg_monitor, pg_signal_backend TO rds_superuser WITH ADMIN OPTION",
			"ALTER ROLE app CREATEDB CREATEROLE NOREPLICATION", "GRANT rds_superuser TO app",
		}},
	{"Google Cloud SQL",
		map[string]string{"cloudsql.iam_authentication": "on", "password_encryption": "scram-sha-256"},
		[]string{"CREATE ROLE cloudsqlsuperuser NOLOGIN CREATEDB CREATEROLE", "ALTER ROLE app CREATEDB CREATEROLE", "GRANT cloudsqlsuperuser TO app"}},
	{"Azure Flexible Server",
		map[string]string{"azure.extensions": "", "ssl_min_protocol_version": "TLSv1.2", "password_encryption": "scram-sha-256"},
		[]string{"CREATE ROLE azure_pg_admin NOLOGIN", "GRANT pg_monitor TO azure_pg_admin", "ALTER ROLE app CREATEDB CREATEROLE", "GRANT azure_pg_admin TO app"}},
	{"Neon",
		map[string]string{"idle_in_transaction_session_timeout": "5min", "max_connections": "112"},
		[]string{
			"CREATE ROLE neon_superuser NOLOGIN CREATEDB CREATEROLE BYPASSRLS", "GRANT pg_read_all_data, pg_write_all_data TO neon_superuser",
			"ALTER ROLE app CREATEDB CREATEROLE", "GRANT neon_superuser TO app",
		}},
	{"Supabase",
		map[string]string{"statement_timeout": "2min", "max_connections": "60"},
		[]string{
			"ALTER ROLE app CREATEDB CREATEROLE REPLICATION BYPASSRLS", "GRANT pg_monitor, pg_read_all_data, pg_signal_backend TO app",
			`ALTER DATABASE app SET search_path = '"$user"', public, extensions`, "ALTER ROLE app SET statement_timeout = '8s'",
		}},
}

// Elections work on a local server with the roles and settings of each service.
func TestElectionsWorkWithSettingsOfServices(t *testing.T) {
	t.Parallel()
	for i, service := range services {
		t.Run(service.name, func(t *testing.T) {
			t.Parallel()
			if i > 0 {
				pgtest.Long(t)
			}
			s := newSite(t, pgtest.Options{HBA: secured, Settings: service.settings}, service.statements...)
			s.encrypted(fmt.Sprintf("password%d", i))
			s.exercise()
		})
	}
}
