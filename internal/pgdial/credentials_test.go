package pgdial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// What completes the connection string is read for each connection, so that a process
// uses a new password without a restart.
func TestCredentialsAreReadForEachConnection(t *testing.T) {
	for variable, file := range map[string]string{ // a file, or empty if the variable is the password
		"PGPASSWORD":    "",
		"PGPASSFILE":    "*:*:*:app:PASSWORD\n",
		"PGSERVICEFILE": "[app]\nhost=db\nuser=app\npassword=PASSWORD\n",
	} {
		t.Run(variable, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			set := func(password string) {
				t.Helper()
				if file == "" {
					t.Setenv(variable, password)
					return
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(file, "PASSWORD", password)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dsn := "postgres://app@db/app"
			if variable == "PGSERVICEFILE" {
				dsn = "service=app"
			}
			if file != "" {
				t.Setenv(variable, path)
			}
			set("first")
			config, err := pgx.ParseConfig(dsn)
			if err != nil {
				t.Fatal(err)
			}
			set("second")
			if err := (Credentials{DSN: dsn}).Renew(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			if config.Password != "second" || config.User != "app" || config.Host != "db" {
				t.Errorf("password %q of %s on %s, want the second one of app on db", config.Password, config.User, config.Host)
			}
		})
	}
}
