package pgdial

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A function of the program that fails in its own way fails one attempt to connect, and
// does not end the program.
func TestFunctionsOfTheProgramMayPanic(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig("postgres://user@localhost/db")
	if err != nil {
		t.Fatal(err)
	}
	credentials := Credentials{DSN: "postgres://user@localhost/db", Password: func(context.Context) (string, error) { panic("on purpose") }}
	wantError(t, credentials.Renew(t.Context(), config), "Password panicked: on purpose")
	_, err = callConnect(t.Context(), config, func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error) { panic("on purpose") })
	wantError(t, err, "Connect panicked: on purpose")
	_, err = callConnect(t.Context(), config, func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error) { return nil, nil }) //nolint:nilnil // a fault
	wantError(t, err, "Connect returned no connection")
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}
