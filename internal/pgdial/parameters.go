package pgdial

import (
	"crypto/tls"
	"slices"
	"strings"
)

// fate is the treatment of a parameter of a connection string.
type fate uint8

const (
	byDriver  fate = iota + 1 // pgx honors it
	byTenure                  // apply honors it
	byPool                    // a pool honors it, other connections have no use for it
	ignored                   // it changes nothing for Tenure
	refused                   // Tenure cannot honor it
	sent                      // the server gets it as a setting
	tenureOwn                 // Tenure chooses the value
)

// parameter is a row of the table: a parameter of libpq or of pgx.
type parameter struct {
	name string // as pgx spells it
	env  string // the variable of libpq, if pgx does not read it
	fate fate
	// values are the possible values; none is any. Refused parameters accept them.
	values []string
	why    string // of a refusal: a remedy, or the missing feature
	apply  func(*reading, string) error
}

var (
	onOff    = []string{"0", "1"}
	versions = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}
)

const (
	noOAuth = "Tenure does not log in by OAuth"
	noList  = "Tenure does not read revocation lists"
)

// parameters are every parameter of libpq 18 and of pgx, and the variables of libpq. An
// empty value is as good as none, as long as the driver does not read it.
var parameters = []parameter{
	// Where the server is.
	{name: "host", fate: byDriver},
	{name: "hostaddr", env: "PGHOSTADDR", fate: byTenure, apply: (*reading).useAddresses},
	{name: "port", fate: byDriver},
	{name: "database", fate: byDriver},
	{name: "service", fate: byDriver},
	{name: "servicefile", fate: byDriver},
	{name: "target_session_attrs", fate: byDriver}, // see refuseStandbys
	{name: "load_balance_hosts", env: "PGLOADBALANCEHOSTS", fate: byTenure, values: []string{"disable", "random"}, apply: (*reading).shuffleHosts},
	{name: "connect_timeout", fate: byDriver},

	// Who logs in.
	{name: "user", fate: byDriver},
	{name: "password", fate: byDriver},
	{name: "passfile", fate: byDriver},
	{name: "require_auth", fate: byDriver},
	{name: "channel_binding", fate: byDriver},
	{name: "krbsrvname", env: "PGKRBSRVNAME", fate: ignored},
	{name: "krbspn", fate: byDriver},
	{name: "gsslib", env: "PGGSSLIB", fate: ignored, values: []string{"gssapi", "sspi"}},
	{name: "gssdelegation", env: "PGGSSDELEGATION", fate: refused, values: []string{"0"}, why: "Tenure does not log in by GSSAPI"},
	{name: "requirepeer", env: "PGREQUIREPEER", fate: refused, why: "Tenure does not check the owner of a socket: use TLS with sslmode=verify-full"},
	{name: "scram_client_key", fate: refused, why: "give the password instead"},
	{name: "scram_server_key", fate: refused, why: "give the password instead"},
	{name: "oauth_issuer", fate: refused, why: noOAuth},
	{name: "oauth_client_id", fate: refused, why: noOAuth},
	{name: "oauth_client_secret", fate: refused, why: noOAuth},
	{name: "oauth_scope", fate: refused, why: noOAuth},

	// Encryption.
	{name: "sslmode", fate: byDriver},
	{name: "ssl", fate: refused, why: "write sslmode instead"},
	{name: "requiressl", fate: refused, values: []string{"0"}, why: "write sslmode=require"},
	{name: "sslnegotiation", fate: byDriver},
	{name: "sslcert", fate: byDriver},
	{name: "sslkey", fate: byDriver},
	{name: "sslpassword", fate: byDriver},
	{name: "sslcertmode", fate: byDriver},
	{name: "sslrootcert", fate: byDriver},
	{name: "sslsni", fate: byDriver},
	{name: "sslcompression", env: "PGSSLCOMPRESSION", fate: ignored, values: onOff},
	{name: "sslcrl", env: "PGSSLCRL", fate: refused, why: noList},
	{name: "sslcrldir", env: "PGSSLCRLDIR", fate: refused, why: noList},
	{name: "sslkeylogfile", fate: refused, why: "Tenure does not write keys of connections"},
	{name: "ssl_min_protocol_version", env: "PGSSLMINPROTOCOLVERSION", fate: byTenure, values: versions, apply: (*reading).atLeastTLS},
	{name: "ssl_max_protocol_version", env: "PGSSLMAXPROTOCOLVERSION", fate: byTenure, values: versions, apply: (*reading).atMostTLS},
	{name: "gssencmode", env: "PGGSSENCMODE", fate: refused, values: []string{"disable", "prefer"}, why: "Tenure encrypts with TLS only: use sslmode"},

	// The network.
	{name: "keepalives", fate: byTenure, values: onOff, apply: (*reading).keepAlive},
	{name: "keepalives_idle", fate: byTenure, apply: (*reading).keepAliveIdle},
	{name: "keepalives_interval", fate: byTenure, apply: (*reading).keepAliveInterval},
	{name: "keepalives_count", fate: byTenure, apply: (*reading).keepAliveCount},
	{name: "tcp_user_timeout", fate: byTenure, apply: (*reading).userTimeout},

	// The protocol.
	{name: "min_protocol_version", fate: byDriver},
	{name: "max_protocol_version", fate: byDriver},
	{name: "replication", fate: refused, values: []string{"0", "false", "off", "no"}, why: "Tenure makes no replication connections"},
	{name: "default_query_exec_mode", fate: tenureOwn},
	{name: "statement_cache_capacity", fate: tenureOwn},
	{name: "description_cache_capacity", fate: tenureOwn},

	// Parameters for the server.
	{name: "application_name", fate: sent},
	{name: "fallback_application_name", fate: byTenure, apply: (*reading).fallbackName},
	{name: "options", fate: sent},
	{name: "client_encoding", env: "PGCLIENTENCODING", fate: ignored}, // every connection is UTF-8
	{name: "datestyle", env: "PGDATESTYLE", fate: ignored},            // every connection sets it
	{name: "geqo", env: "PGGEQO", fate: ignored},

	{name: "pool_max_conns", fate: byPool},
	{name: "pool_min_conns", fate: byPool},
	{name: "pool_min_idle_conns", fate: byPool},
	{name: "pool_max_conn_lifetime", fate: byPool},
	{name: "pool_max_conn_lifetime_jitter", fate: byPool},
	{name: "pool_max_conn_idle_time", fate: byPool},
	{name: "pool_health_check_period", fate: byPool},
	{name: "pool_ping_timeout", fate: byPool},
}

// Knows reports whether libpq, pgx or Tenure knows a parameter of a connection string.
func Knows(name string) bool {
	_, known := lookUp(name)
	return known || name == "dbname"
}

// lookUp returns the row of a parameter, or one for a setting also made by connections of
// Tenure. Drivers send such settings, so programs have them in their strings.
func lookUp(name string) (parameter, bool) {
	if at := slices.IndexFunc(parameters, func(p parameter) bool { return strings.EqualFold(p.name, name) }); at >= 0 {
		return parameters[at], true
	}
	known := slices.ContainsFunc(table, func(s setting) bool {
		return s.name != IncarnationSetting && strings.EqualFold(s.name, name)
	})
	return parameter{name: name, fate: sent}, known
}

// tlsVersions are the names of libpq.
var tlsVersions = map[string]uint16{
	"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
}
