package pgdial

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Credentials are where the address and the credentials of new connections come
// from.
type Credentials struct {
	// DSN is the connection string. The environment and its completing files are read
	// again for each connection: the password file, the service file, the certificates.
	DSN string
	// Password returns the password of one connection, if it is not nil.
	Password func(context.Context) (string, error)
}

// Renew sets the current address and credentials of a configuration. Errors do not
// contain the connection string.
func (c Credentials) Renew(ctx context.Context, config *pgx.ConnConfig) error {
	read, err := readConfig(c.DSN)
	if err != nil {
		return fmt.Errorf("the connection string and its files cannot be read again: %w", err)
	}
	current := read.config
	if c.Password != nil {
		if current.Password, err = callPassword(ctx, c.Password); err != nil {
			return fmt.Errorf("no password: %w", err)
		}
	}
	logInAs(config, current)
	if read.addresses != nil {
		config.LookupFunc = current.LookupFunc
	}
	return nil
}

// logInAs copies the address and the credentials of a configuration.
func logInAs(config, other *pgx.ConnConfig) {
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = other.Host, other.Port, other.TLSConfig, other.Fallbacks
	config.Database, config.User, config.Password = other.Database, other.User, other.Password
}

// ParseDetail returns the fault of a connection string if the text is one of the phrases
// known to contain nothing of the string itself.
func ParseDetail(err error) string {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return ""
	}
	text := err.Error()
	at := strings.LastIndex(text, "`: ")
	for _, phrase := range []string{
		"failed to configure TLS", "invalid port", "invalid connect_timeout", "unknown target_session_attrs value",
		"failed to read service", "cannot parse statement_cache_capacity",
		"cannot parse description_cache_capacity", "invalid default_query_exec_mode", "invalid sslcertmode",
		"invalid require_auth", "unknown channel_binding value", "invalid min_protocol_version",
		"invalid max_protocol_version", "min_protocol_version cannot be greater than max_protocol_version",
	} {
		if at >= 0 && strings.HasPrefix(text[at+len("`: "):], phrase) {
			return " (" + phrase + ")"
		}
	}
	return ""
}
