package pgdial

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// secret is the password of the fuzzed strings. Its characters are in no message.
const secret = "QXZJ9QZXJ8XQJZ7ZQXJ6"

// partOf returns a part of the secret, of 4 characters, that is in a text; "" if none is.
func partOf(text string) string {
	for i := range len(secret) - 3 {
		if strings.Contains(text, secret[i:i+4]) {
			return secret[i : i+4]
		}
	}
	return ""
}

// written returns the secret with characters in it that a string must escape, as a user
// types it: parts of at least 4 characters of the secret remain.
func written(random *rand.Rand) string {
	const special = `@/#?:%&=+ ,;'"\[]$!*()~^|<>{}` + "`\t\n"
	parts := []string{}
	for at := 0; at < len(secret); {
		length := min(4+random.IntN(6), len(secret)-at)
		parts = append(parts, secret[at:at+length])
		at += length
	}
	var text strings.Builder
	for i, part := range parts {
		if i > 0 {
			for range 1 + random.IntN(2) {
				text.WriteByte(special[random.IntN(len(special))])
			}
		}
		if random.IntN(8) == 0 {
			text.WriteString("12")
		}
		text.WriteString(part)
	}
	if random.IntN(4) == 0 { // a port, or a value of a parameter
		return []string{"12/", "1?", "a@b/", "5432/x?", "pw=", "a b=", "x@y?z="}[random.IntN(7)] + text.String()
	}
	return text.String()
}

// stringWith returns a connection string with a password that is not escaped.
func stringWith(random *rand.Rand, password string) string {
	switch random.IntN(7) {
	case 0:
		return "postgres://app:" + password + "@db/app"
	case 1:
		return "postgresql://app:" + password + "@db:5432/app?sslmode=disable"
	case 2:
		return "postgres://app:" + password + "@db,db2/app?connect_timeout=2"
	case 3:
		return "host=db user=app password=" + password + " dbname=app"
	case 4:
		return "password=" + password + " host=db"
	case 5:
		return "host=db password='" + password + "' sslmode=disable"
	}
	return "postgres://db/app?user=app&password=" + password
}

// said is what a string makes visible: errors, and the names that are looked up and
// printed when the server does not answer.
func said(t *testing.T, dsn string) string {
	t.Helper()
	config, err := ParseConfig(dsn)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) {
		text.WriteString(" looked up " + host)
		return []string{"192.0.2.1"}, nil
	}
	config.DialFunc = func(_ context.Context, _, address string) (net.Conn, error) {
		text.WriteString(" dialed " + address)
		return nil, errDialed
	}
	for _, host := range targets(config) {
		if addresses, err := host.resolve(t.Context(), config, bound(config)); err == nil {
			_, _ = config.DialFunc(t.Context(), "tcp", strings.Join(addresses, ","))
		}
		text.WriteString(" said " + describe(host, config, errDialed).Error())
	}
	return text.String()
}

func testNoPart(t *testing.T, count int) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(count), 4))
	for range count {
		dsn := stringWith(random, written(random))
		if text := said(t, dsn); partOf(text) != "" {
			t.Fatalf("%q says %s of the password: %s", dsn, partOf(text), text)
		}
	}
}

// A password that is not escaped is in no error and in no name that is looked up.
func TestNoPartOfAPasswordIsSaid(t *testing.T) { testNoPart(t, 20_000) }

func TestNoPartOfAPasswordIsSaidInAMillionStrings(t *testing.T) {
	pgtest.Long(t)
	testNoPart(t, 1_000_000)
}

func TestUnescapedPasswordsAreRefused(t *testing.T) {
	for _, dsn := range []string{
		"postgres://node:p@ss/word#1@127.0.0.1:1/app",
		"postgres://node:SECRETa@b@127.0.0.1:1/app",
		"postgres://node:12/SECRET@127.0.0.1:1/app",
		"postgres://node:a@b?user=c@h/app",
		"postgres://node:1/a?password=c@h/app",
		"postgres://h/app#1",
		"postgres://h/a/b",
		"host=a@b dbname=app",
		"host=a/b dbname=app",
	} {
		if _, err := ParseConfig(dsn); err == nil || !strings.Contains(err.Error(), "escape the password") {
			t.Errorf("%s: %v, want an error with \"escape the password\"", dsn, err)
		}
	}
	for _, dsn := range []string{
		"postgres://node%40tenant:p%40ss%2Fword%231@127.0.0.1:1/app%40x",
		"postgres://node:p#ss?w@127.0.0.1:1/app", // as libpq reads it
		"postgres://node@/app?host=/run/postgresql",
		"postgres://%2Frun%2Fpostgresql/app",
		"postgres://[::1]:1/app?options=-c%20search_path%3Da",
		"host=db user=me@tenant password=p@ss/word#1 dbname=a@b",
	} {
		if _, err := ParseConfig(dsn); err != nil {
			t.Errorf("%s: %v, want no error", dsn, err)
		}
	}
}

// A whole connection string where a name belongs would be printed with its password.
func TestConnectionStringsAreNoNames(t *testing.T) {
	for _, variable := range []string{"PGDATABASE", "PGUSER", "PGHOST"} {
		for _, value := range []string{"postgres://app:" + secret + "@db/app", "host=db password=" + secret} {
			t.Run(variable, func(t *testing.T) {
				t.Setenv(variable, value)
				if _, err := ParseConfig(""); err == nil || partOf(err.Error()) != "" {
					t.Errorf("%s: %v, want an error without the password", variable, err)
				}
			})
		}
	}
}

// Neither do the files of libpq: their lines are not repeated.
func TestFilesAreNotRepeated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	file := filepath.Join(t.TempDir(), "file")
	for range 300 {
		password := strings.ReplaceAll(written(random), "\n", " ")
		for variable, line := range map[string]string{"PGPASSFILE": "db:5432:app:app:" + password, "PGSERVICEFILE": "[app]\nhost=db\nuser=app\npassword=" + password} {
			if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv(variable, file)
			dsn := "postgres://app@db/app"
			if variable == "PGSERVICEFILE" {
				dsn = "service=app"
			}
			text := said(t, dsn)
			if err := (Credentials{DSN: dsn}).Renew(t.Context(), &pgx.ConnConfig{}); err != nil {
				text += err.Error()
			}
			if partOf(text) != "" {
				t.Fatalf("%q of %s says %s: %s", line, variable, partOf(text), text)
			}
			t.Setenv(variable, "")
		}
	}
}
