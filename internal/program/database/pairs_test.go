package database

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestTakeFromPairsRemovesOwnPairs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dsn, rest string
		values    []string
	}{
		{"", "", nil},
		{"m=x", "", []string{"x"}},
		{"host=h m=x port=1", "host=h port=1", []string{"x"}},
		{"m=x host=h", "host=h", []string{"x"}},
		{"host=h\tm = x\nport=1", "host=h\tport=1", []string{"x"}},
		{`m='it\'s x' host=h`, "host=h", []string{"it's x"}},
		{`m=it\'s\ x host=h`, "host=h", []string{"it's x"}},
		{`password='m=x' host=h`, `password='m=x' host=h`, nil},
		{`password=\'\ m=x host=h`, `password=\'\ m=x host=h`, nil},
		{"am=x m2=y", "am=x m2=y", nil},
		{"m= host=h", "", []string{"host=h"}}, // as libpq reads it
		{"m=x m=y", "", []string{"x", "y"}},
		{"nonsense", "nonsense", nil},
		{"non sense m=x", "non sense m=x", nil},
	} {
		rest, values := takeFromPairs(test.dsn, "m")
		if rest != test.rest || !slices.Equal(values, test.values) {
			t.Errorf("%s: got %q, %q", test.dsn, rest, values)
		}
	}
}

// The driver must see in the rest what it saw in the whole.
func TestPairsAreReadAsTheDriverReadsThem(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		`host=h user=u password='pass word' dbname=d application_name=x`,
		`application_name = 'x\'y z' host=h user='u' password=p\ q`,
		`host=h application_name=a\\b user=u`,
		"user=u\n\thost = 'h'  application_name='' password=' application_name=z '",
	} {
		whole, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		rest, values := takeFromPairs(dsn, "application_name")
		config, err := pgx.ParseConfig(rest)
		if err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		if len(values) != 1 || values[0] != whole.RuntimeParams["application_name"] {
			t.Errorf("%s: got %q, the driver %q", dsn, values, whole.RuntimeParams["application_name"])
		}
		if config.Password != whole.Password || config.User != whole.User || config.Host != whole.Host || config.Database != whole.Database {
			t.Errorf("%s: the driver reads %q otherwise", dsn, rest)
		}
	}
}
