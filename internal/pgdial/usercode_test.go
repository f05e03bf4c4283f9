package pgdial

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A function of the program that fails in its own way fails one attempt to connect, and
// does not end the program.
func TestFunctionsOfTheProgramMayPanic(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail func()
		want string
	}{
		"panic": {func() { panic("on purpose") }, "panicked: on purpose"},
		"exit":  {runtime.Goexit, "panicked: it ended its goroutine with runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := make(chan [2]error, 1)
			go func() { // as the goroutine of a node
				defer close(failed)
				var errs [2]error
				_, errs[0] = callPassword(t.Context(), func(context.Context) (string, error) { test.fail(); return "", nil })
				_, errs[1] = callConnect(t.Context(), nil, func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error) {
					test.fail()
					return nil, errors.New("not reached")
				})
				failed <- errs
			}()
			errs := <-failed
			wantError(t, errs[0], "Password "+test.want)
			wantError(t, errs[1], "Connect "+test.want)
		})
	}
}

// A function that returns no connection has failed, and so does an opening whose
// password cannot be had.
func TestFunctionsOfTheProgramFailOneAttempt(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig("postgres://user@localhost/db")
	if err != nil {
		t.Fatal(err)
	}
	credentials := Credentials{DSN: "postgres://user@localhost/db", Password: func(context.Context) (string, error) { panic("on purpose") }}
	wantError(t, credentials.Renew(t.Context(), config), "Password panicked: on purpose")
	_, err = callConnect(t.Context(), config, func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error) { return nil, nil }) //nolint:nilnil // a fault
	wantError(t, err, "Connect returned no connection")
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}
