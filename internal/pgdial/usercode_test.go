package pgdial

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/clocks"
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

// A function that ends its goroutine, or returns an error whose text panics, fails the
// attempt too: with several hosts, the caller that waits for all attempts gets an answer.
func TestFunctionsOfTheProgramMayEndTheirGoroutine(t *testing.T) {
	t.Parallel()
	const dsn = "postgres://user@localhost:1,localhost:2/db"
	for name, test := range map[string]struct {
		fail func() error
		text string
	}{
		"ends its goroutine":        {func() error { runtime.Goexit(); return nil }, "panicked: it ended its goroutine with runtime.Goexit"},
		"an error that has no text": {func() error { return (*wordless)(nil) }, "panicked: runtime error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			answers := make(chan error, 2)
			config, err := pgx.ParseConfig(dsn)
			if err != nil {
				t.Fatal(err)
			}
			credentials := Credentials{DSN: dsn, Password: func(context.Context) (string, error) { return "", test.fail() }}
			options := Options{Connect: func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error) { return nil, test.fail() }}
			go func() { answers <- credentials.Renew(ctx, config.Copy()) }()
			go func() {
				_, err := New(clocks.System()).Connect(ctx, config, options)
				answers <- err
			}()
			for range cap(answers) {
				select {
				case err := <-answers:
					wantError(t, err, test.text)
				case <-ctx.Done():
					t.Fatal("no answer, although the function has ended")
				}
			}
		})
	}
}

// wordless is an error whose text panics.
type wordless struct{ text string }

func (e *wordless) Error() string { return e.text }

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}
