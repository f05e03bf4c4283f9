package pgdial

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
)

// cacheCapacity is how many statements or descriptions a connection of a pool keeps. It is
// the driver's default.
const cacheCapacity = 512

// ParseConfig reads a connection string, the service file and the variables of libpq. Each
// parameter is honored, ignored or refused as the table says, before any name is looked
// up. An error matches [tenure.ErrInvalidConfig] and contains no possible part of a
// password from the string.
func ParseConfig(dsn string) (*pgx.ConnConfig, error) {
	read, err := readConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tenure.ErrInvalidConfig, err)
	}
	return read.config, nil
}

// reading is a configuration while its parameters are applied.
type reading struct {
	dsn       string
	config    *pgx.ConnConfig
	addresses map[string][]string // by host, from hostaddr
	dialer    *net.Dialer         // not nil if the string says how to dial
}

func readConfig(dsn string) (*reading, error) {
	if err := refuseRemains(dsn); err != nil {
		return nil, err
	}
	r := &reading{dsn: dsn}
	if err := r.parse(); err != nil {
		return nil, err
	}
	if err := r.applyAll(); err != nil {
		return nil, err
	}
	if err := r.refuseStandbys(); err != nil {
		return nil, err
	}
	if err := r.refuseNames(); err != nil {
		return nil, err
	}
	if r.dialer != nil {
		r.dialer.Timeout = r.config.ConnectTimeout
		r.config.DialFunc = r.dialer.DialContext
	}
	// The driver's modes are for poolers: sessions refuse poolers, and leases have their
	// own mode.
	r.config.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	r.config.StatementCacheCapacity, r.config.DescriptionCacheCapacity = cacheCapacity, cacheCapacity
	return r, nil
}

// parse makes the configuration of the string.
func (r *reading) parse() error {
	config, err := pgx.ParseConfig(r.dsn)
	if directory := os.Getenv("PGSYSCONFDIR"); err != nil && directory != "" && os.Getenv("PGSERVICEFILE") == "" &&
		strings.Contains(ParseDetail(err), "failed to read service") {
		config, err = pgx.ParseConfig(with(r.dsn, "servicefile", filepath.Join(directory, "pg_service.conf")))
	}
	if err != nil {
		return fmt.Errorf("the connection string cannot be parsed%s; it must be a URL "+
			"(postgres://user:password@host:5432/database) or a list of key=value pairs", ParseDetail(err))
	}
	r.config = config
	return nil
}

// applyAll applies the rows of the table, in its order.
func (r *reading) applyAll() error {
	given, err := r.takeGiven()
	if err != nil {
		return err
	}
	for _, row := range parameters {
		value, named := given[row.name]
		if !named && row.env != "" {
			value = os.Getenv(row.env)
		}
		if value == "" {
			continue
		}
		if err := r.applyRow(row, value); err != nil {
			return err
		}
	}
	return r.refuseOldSSL()
}

// takeGiven returns the parameters the driver would send, by the names of their rows, and
// leaves only settings of the server.
func (r *reading) takeGiven() (map[string]string, error) {
	given := maps.Clone(r.config.RuntimeParams)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		row, known := lookUp(name)
		if !known {
			return nil, r.unknown(name)
		}
		if row.fate != sent {
			delete(r.config.RuntimeParams, name)
		}
		given[row.name] = given[name]
	}
	return given, nil
}

func (r *reading) applyRow(row parameter, value string) error {
	switch possible := slices.Contains(row.values, value); {
	case row.fate == refused && !possible:
		return fmt.Errorf("the connection string sets %s: %s", row.label(), row.why)
	case row.fate != refused && len(row.values) > 0 && !possible:
		return fmt.Errorf("%s must be %s", row.label(), strings.Join(row.values, " or "))
	case row.apply != nil:
		if err := row.apply(r, value); err != nil {
			return fmt.Errorf("%s %w", row.label(), err)
		}
	}
	return nil
}

// label names a parameter with its variable.
func (p parameter) label() string {
	if p.env == "" {
		return p.name
	}
	return p.name + " (" + p.env + ")"
}

// refuseOldSSL refuses PGREQUIRESSL unless the string already requires TLS.
func (r *reading) refuseOldSSL() error {
	if !strings.HasPrefix(os.Getenv("PGREQUIRESSL"), "1") {
		return nil
	}
	for _, host := range targets(r.config) {
		if !host.isSocket() && slices.Contains(host.tls, nil) {
			return errors.New("the environment sets PGREQUIRESSL: set PGSSLMODE=require")
		}
	}
	return nil
}

// plainName is how a parameter or a setting is spelled.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,62}$`)

// unknown refuses a parameter. Its name may be a part of a password with a space or an
// ampersand in it.
func (r *reading) unknown(name string) error {
	const advice = "a setting of the server is written options='-c name=value'"
	secret := strings.Contains(r.dsn, name) && strings.Contains(strings.ToLower(r.dsn), "pass")
	if secret || !plainName.MatchString(name) {
		return errors.New("the connection string has a parameter that neither libpq nor Tenure knows, or an unescaped password: " +
			"escape the password; " + advice)
	}
	return fmt.Errorf("the connection string has the parameter %s, which neither libpq nor Tenure knows: %s", name, advice)
}

// refuseStandbys refuses requirements no primary meets: they would be tried for ever.
func (r *reading) refuseStandbys() error {
	wants := func(check pgconn.ValidateConnectFunc) bool {
		return r.config.ValidateConnect != nil && reflect.ValueOf(r.config.ValidateConnect).Pointer() == reflect.ValueOf(check).Pointer()
	}
	switch {
	case wants(pgconn.ValidateConnectTargetSessionAttrsStandby), wants(pgconn.ValidateConnectTargetSessionAttrsReadOnly):
		return errors.New("target_session_attrs must be any, read-write, primary or prefer-standby: Tenure writes to the primary")
	case wants(pgconn.ValidateConnectTargetSessionAttrsPreferStandby):
		r.config.ValidateConnect = nil
	}
	return nil
}

// shuffleHosts puts the hosts in a random order. The primary is still found first, once
// it is known.
func (r *reading) shuffleHosts(value string) error {
	if value != "random" {
		return nil
	}
	hosts := targets(r.config)
	rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	narrowed := hosts[0].narrow(r.config)
	for _, host := range hosts[1:] {
		other := host.narrow(r.config)
		narrowed.Fallbacks = append(narrowed.Fallbacks, &pgconn.FallbackConfig{Host: other.Host, Port: other.Port, TLSConfig: other.TLSConfig})
		narrowed.Fallbacks = append(narrowed.Fallbacks, other.Fallbacks...)
	}
	logInAs(r.config, narrowed)
	return nil
}

func (r *reading) fallbackName(value string) error {
	if r.config.RuntimeParams["application_name"] == "" {
		r.config.RuntimeParams["application_name"] = value
	}
	return nil
}

func (r *reading) atLeastTLS(value string) error {
	for _, way := range r.tls() {
		way.MinVersion = tlsVersions[value]
	}
	return nil
}

func (r *reading) atMostTLS(value string) error {
	for _, way := range r.tls() {
		if way.MaxVersion = tlsVersions[value]; way.MinVersion > way.MaxVersion {
			return errors.New("must not be less than ssl_min_protocol_version")
		}
	}
	return nil
}

// isURL reports whether the driver reads a connection string as a URL.
func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// with returns a connection string with one more parameter. It replaces an earlier one.
func with(dsn, name, value string) string {
	if !isURL(dsn) {
		return dsn + " " + name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	}
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	return dsn + separator + name + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// numberOf reads a number of a parameter.
func numberOf(value string) (int, error) {
	number, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || number < -1<<31 || number > 1<<31-1 {
		return 0, errors.New("must be a whole number")
	}
	return number, nil
}
