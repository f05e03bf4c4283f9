package pgdial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// ofLibpq18 are the parameter key words that the documentation of PostgreSQL 18 lists.
var ofLibpq18 = []string{
	"host", "hostaddr", "port", "dbname", "user", "password", "passfile", "require_auth", "channel_binding", "connect_timeout",
	"client_encoding", "options", "application_name", "fallback_application_name", "keepalives", "keepalives_idle",
	"keepalives_interval", "keepalives_count", "tcp_user_timeout", "replication", "gssencmode", "sslmode", "requiressl",
	"sslnegotiation", "sslcompression", "sslcert", "sslkey", "sslkeylogfile", "sslpassword", "sslcertmode", "sslrootcert", "sslcrl",
	"sslcrldir", "sslsni", "requirepeer", "ssl_min_protocol_version", "ssl_max_protocol_version", "min_protocol_version",
	"max_protocol_version", "krbsrvname", "gsslib", "gssdelegation", "scram_client_key", "scram_server_key", "service",
	"target_session_attrs", "load_balance_hosts", "oauth_issuer", "oauth_client_id", "oauth_client_secret", "oauth_scope",
}

func TestEveryParameterOfLibpqHasOneRow(t *testing.T) {
	rows := map[string]int{"dbname": 1}
	for _, row := range parameters {
		rows[row.name]++
	}
	for _, name := range ofLibpq18 {
		if rows[name] != 1 {
			t.Errorf("%s has %d rows, want 1", name, rows[name])
		}
	}
}

// fates are what becomes of parameters with a value: an error that has all the words, or
// nothing that a server would get.
var fates = []struct {
	name, env, value string
	want             string // "" if the string is accepted
}{
	{"client_encoding", "PGCLIENTENCODING", "auto", ""},
	{"client_encoding", "PGCLIENTENCODING", "LATIN1", ""},
	{"fallback_application_name", "", "x", ""},
	{"gssdelegation", "PGGSSDELEGATION", "0", ""},
	{"gssdelegation", "PGGSSDELEGATION", "1", "GSSAPI"},
	{"gssencmode", "PGGSSENCMODE", "disable", ""},
	{"gssencmode", "PGGSSENCMODE", "prefer", ""},
	{"gssencmode", "PGGSSENCMODE", "require", "TLS only"},
	{"gsslib", "PGGSSLIB", "gssapi", ""},
	{"hostaddr", "PGHOSTADDR", "127.0.0.1", ""},
	{"hostaddr", "PGHOSTADDR", "::1", ""},
	{"hostaddr", "PGHOSTADDR", "db", "numeric"},
	{"hostaddr", "PGHOSTADDR", "127.0.0.1,127.0.0.2", "1 and not 2"},
	{"keepalives", "", "0", ""},
	{"keepalives", "", "1", ""},
	{"keepalives", "", "yes", "0 or 1"},
	{"keepalives_count", "", "3", ""},
	{"keepalives_idle", "", "30", ""},
	{"keepalives_idle", "", "soon", "whole number"},
	{"keepalives_interval", "", "5", ""},
	{"krbsrvname", "PGKRBSRVNAME", "pg", ""},
	{"load_balance_hosts", "PGLOADBALANCEHOSTS", "disable", ""},
	{"load_balance_hosts", "PGLOADBALANCEHOSTS", "random", ""},
	{"load_balance_hosts", "PGLOADBALANCEHOSTS", "fair", "disable or random"},
	{"oauth_client_id", "", "x", "OAuth"},
	{"oauth_client_secret", "", "x", "OAuth"},
	{"oauth_issuer", "", "x", "OAuth"},
	{"oauth_scope", "", "x", "OAuth"},
	{"replication", "", "off", ""},
	{"replication", "", "database", "replication connections"},
	{"requirepeer", "PGREQUIREPEER", "", ""},
	{"requirepeer", "PGREQUIREPEER", "postgres", "verify-full"},
	{"requiressl", "", "0", ""},
	{"requiressl", "", "1", "sslmode=require"},
	{"scram_client_key", "", "x", "the password"},
	{"scram_server_key", "", "x", "the password"},
	{"ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", "TLSv1.3", ""},
	{"ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", "SSLv3", "TLSv1.2 or TLSv1.3"},
	{"ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", "TLSv1.2", ""},
	{"sslcompression", "PGSSLCOMPRESSION", "1", ""},
	{"sslcrl", "PGSSLCRL", "", ""},
	{"sslcrl", "PGSSLCRL", "/a.crl", "revocation"},
	{"sslcrldir", "PGSSLCRLDIR", "/crl", "revocation"},
	{"sslkeylogfile", "", "/keys", "keys"},
	{"target_session_attrs", "PGTARGETSESSIONATTRS", "read-write", ""},
	{"target_session_attrs", "PGTARGETSESSIONATTRS", "prefer-standby", ""},
	{"target_session_attrs", "PGTARGETSESSIONATTRS", "standby", "writes to the primary"},
	{"target_session_attrs", "PGTARGETSESSIONATTRS", "read-only", "writes to the primary"},
	{"tcp_user_timeout", "", "500", ""},
	{"tcp_user_timeout", "", "-1", "negative"},
	// Of pgx.
	{"statement_cache_capacity", "", "0", ""},
	{"description_cache_capacity", "", "0", ""},
	{"default_query_exec_mode", "", "simple_protocol", ""},
	{"default_query_exec_mode", "", "fast", "default_query_exec_mode"},
	{"pool_max_conns", "", "4", ""},
	// Of neither.
	{"keepalive_idle", "", "30", "keepalive_idle, which neither libpq nor Tenure knows"},
	{"log_statement", "", "all", "options='-c name=value'"},
	{IncarnationSetting, "", "1", "neither libpq nor Tenure knows"},
}

// No parameter reaches the server as a setting by chance, wherever it is set.
func TestParametersAreHonoredIgnoredOrRefused(t *testing.T) {
	for _, test := range fates {
		check := func(way, dsn string) {
			config, err := ParseConfig(dsn)
			label := fmt.Sprintf("%s=%s in %s", test.name, test.value, way)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%s: %v, want no error", label, err)
			case test.want == "":
				delete(config.RuntimeParams, "application_name")
				if len(config.RuntimeParams) != 0 {
					t.Errorf("%s: the server would get %v, want nothing", label, config.RuntimeParams)
				}
			case !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.name):
				t.Errorf("%s: got %v, want an error of the configuration with %q", label, err, test.want)
			}
		}
		check("a URL", "postgres://app@db/app?"+test.name+"="+test.value)
		check("pairs", "host=db user=app "+test.name+"='"+test.value+"'")
		service := filepath.Join(t.TempDir(), "service.conf")
		if err := os.WriteFile(service, []byte("[app]\nhost=db\nuser=app\n"+test.name+"="+test.value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PGSERVICEFILE", service)
		check("a service file", "service=app")
		if test.env != "" {
			t.Setenv(test.env, test.value)
			check("the environment", "postgres://app@db/app")
			t.Setenv(test.env, "")
		}
	}
}

func TestSettingsOfTheServerAreSent(t *testing.T) {
	config, err := ParseConfig("postgres://app@db/app?search_path=a&statement_timeout=1s&timezone=UTC&options=-c%20geqo%3Doff&application_name=x&fallback_application_name=y")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"search_path": "a", "statement_timeout": "1s", "timezone": "UTC", "options": "-c geqo=off", "application_name": "x"}
	if fmt.Sprint(config.RuntimeParams) != fmt.Sprint(want) {
		t.Errorf("the server gets %v, want %v", config.RuntimeParams, want)
	}
}

func TestOldVariablesThatRequireTLSAreRefused(t *testing.T) {
	t.Setenv("PGREQUIRESSL", "1")
	if _, err := ParseConfig("postgres://app@db/app"); err == nil || !strings.Contains(err.Error(), "PGREQUIRESSL") {
		t.Errorf("got %v, want an error with PGREQUIRESSL", err)
	}
	if _, err := ParseConfig("postgres://app@db/app?sslmode=require"); err != nil {
		t.Errorf("with TLS: %v, want no error", err)
	}
}

// The service file of the system is read, as psql reads it.
func TestServiceFileOfTheSystemIsRead(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("HOME", directory)
	t.Setenv("PGSERVICEFILE", "")
	t.Setenv("PGSYSCONFDIR", directory)
	if err := os.WriteFile(filepath.Join(directory, "pg_service.conf"), []byte("[app]\nhost=db\nuser=app\nkeepalives=0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dsn := range []string{"service=app", "postgres://?service=app"} {
		if config, err := ParseConfig(dsn); err != nil || config.Host != "db" {
			t.Errorf("%s: %v, want the host db", dsn, err)
		}
	}
}

func TestTLSVersionsAreSet(t *testing.T) {
	config, err := ParseConfig("host=a,b user=app sslmode=prefer ssl_min_protocol_version=TLSv1.2 ssl_max_protocol_version=TLSv1.2")
	if err != nil {
		t.Fatal(err)
	}
	read := reading{config: config}
	ways := read.tls()
	for _, way := range ways {
		if way.MinVersion != tls.VersionTLS12 || way.MaxVersion != tls.VersionTLS12 {
			t.Errorf("versions %x to %x, want only 1.2", way.MinVersion, way.MaxVersion)
		}
	}
	if len(ways) != 2 {
		t.Errorf("%d ways with TLS, want 2", len(ways))
	}
	if _, err := ParseConfig("host=a user=app ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2"); err == nil {
		t.Error("a range without a version was accepted")
	}
}

// The address is dialed, and TLS verifies the name of the host.
func TestHostaddrIsDialedAndTheHostVerified(t *testing.T) {
	for dsn, want := range map[string][]string{ // address and name for TLS
		"host=db hostaddr=127.0.0.9 port=5":                            {"127.0.0.9:5 db"},
		"host=db1,db2 hostaddr=127.0.0.8,127.0.0.9 port=5,6":           {"127.0.0.8:5 db1", "127.0.0.9:6 db2"},
		"host=db,db hostaddr=127.0.0.8,127.0.0.9 port=5,6":             {"127.0.0.8:5 db", "127.0.0.9:6 db"},
		"host=db,db hostaddr=127.0.0.8,127.0.0.9 port=5":               {"127.0.0.8:5 db", "127.0.0.9:5 db"},
		"hostaddr=127.0.0.8,127.0.0.9 port=5":                          {"127.0.0.8:5 ", "127.0.0.9:5 "},
		"host=/run/postgresql hostaddr=127.0.0.9 port=5":               {"127.0.0.9:5 "},
		"host=10.0.0.1 hostaddr=127.0.0.9 port=5":                      {"127.0.0.9:5 "},
		"host=db hostaddr=::1 port=5 load_balance_hosts=random":        {"[::1]:5 db"},
		"host=db hostaddr=::1 port=5 ssl_min_protocol_version=TLSv1.2": {"[::1]:5 db"},
	} {
		for _, mode := range []string{"require", "prefer"} {
			config, err := ParseConfig(dsn + " user=app sslmode=" + mode)
			if err != nil {
				t.Errorf("%s: %v", dsn, err)
				continue
			}
			var got []string
			for _, host := range targets(config) {
				addresses, err := host.resolve(t.Context(), host.narrow(config), bound(config))
				if err != nil {
					t.Errorf("%s: %v, want no look-up", dsn, err)
				}
				for _, address := range addresses {
					got = append(got, address+" "+host.tls[0].ServerName)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: addresses and names %q, want %q", dsn, got, want)
			}
		}
	}
}

// Each connection has a new order, and every host keeps its ways to use TLS.
func TestHostsAreInRandomOrder(t *testing.T) {
	orders := map[string]bool{}
	for range 200 {
		config, err := ParseConfig("host=a,b,c port=1,2,3 user=app sslmode=prefer load_balance_hosts=random")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, host := range targets(config) {
			order = append(order, host.name())
			if len(host.tls) != 2 || host.tls[0] == nil || host.tls[1] != nil || host.tls[0].ServerName != host.host {
				t.Fatalf("%s has the ways %v, want TLS for it and none", host.name(), host.tls)
			}
		}
		orders[strings.Join(order, " ")] = true
	}
	if len(orders) != 6 {
		t.Errorf("%d orders of three hosts, want 6: %v", len(orders), orders)
	}
}

// errDialed is an error of a dialer that dials nothing.
var errDialed = errors.New("dialed")

// A new address of the environment holds for the next connection.
func TestHostaddrIsReadForEachConnection(t *testing.T) {
	const dsn = "postgres://app@db/app?sslmode=disable"
	t.Setenv("PGHOSTADDR", "127.0.0.8")
	config, err := ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGHOSTADDR", "127.0.0.9")
	if err := (Credentials{DSN: dsn}).Renew(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	var got string
	config.DialFunc = func(_ context.Context, _, address string) (net.Conn, error) {
		got = address
		return nil, errDialed
	}
	if _, err := pgx.ConnectConfig(t.Context(), config); !errors.Is(err, errDialed) || got != "127.0.0.9:5432" {
		t.Errorf("dialed %q (%v), want 127.0.0.9:5432", got, err)
	}
}
