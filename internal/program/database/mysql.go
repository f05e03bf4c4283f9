package database

import (
	"cmp"
	"context"
	"database/sql"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/exactly-one/tenure/internal/program/nearest"
	"github.com/exactly-one/tenure/lease"
)

// silence bounds a wait for a silent server: longer than package lease lets a statement
// take, so the statement's own end comes first.
const silence = 30 * time.Second

// mysqlParameters are the parameters of a URL of MySQL, after the question mark.
var mysqlParameters = []string{"ca", "cert", "key", "socket", "tls"}

// parseMySQL reads mysql://user:password@host:port/database and mariadb://...
//
// A matched row counts as affected, whether or not it then changed, as on the other
// databases: with the driver's default a heartbeat without a change to its row would look
// like one that finds no row.
func parseMySQL(dsn string, login Password) (*Target, error) {
	address, err := url.Parse(dsn)
	_, rest, _ := strings.Cut(dsn, "://")
	if behind := strings.IndexAny(rest, "/?#"); err != nil || address.Fragment != "" || behind >= 0 && strings.Contains(rest[behind:], "@") {
		return nil, invalid("the connection string cannot be parsed; it must be a URL (mysql://user:password@host:3306/database) " +
			"in which characters such as # / ? @ : %% in the password are percent-encoded")
	}
	parameters, err := parametersOf(address)
	if err != nil {
		return nil, err
	}

	config := mysql.NewConfig()
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	config.DBName = strings.TrimPrefix(address.Path, "/")
	switch {
	case config.User == "":
		return nil, invalid("the connection string names no user: mysql://user:password@host:3306/database")
	case config.DBName == "" || strings.Contains(config.DBName, "/"):
		return nil, invalid("the connection string must name one database: mysql://user:password@host:3306/database")
	}
	if err := setAddress(config, address, parameters["socket"]); err != nil {
		return nil, err
	}
	if err := setTLS(config, parameters); err != nil {
		return nil, err
	}
	config.Timeout, config.ReadTimeout, config.WriteTimeout = connectTimeout, silence, silence
	config.ParseTime, config.Loc = true, time.UTC
	config.InterpolateParams = true // or each statement is prepared first: two round trips more
	config.ClientFoundRows = true
	config.Logger = &mysql.NopLogger{} // its errors are also returned
	// Without it the driver asks for utf8mb4 in the handshake.
	config.Collation = ""
	// With other values on the server no transaction begins, and no update of all rows
	// runs. It is one statement at every connect.
	config.Params = map[string]string{"autocommit": "1", "sql_safe_updates": "0"}

	if login != nil {
		err := config.Apply(mysql.BeforeConnect(func(ctx context.Context, config *mysql.Config) (err error) {
			config.Passwd, err = login(ctx)
			return err
		}))
		if err != nil {
			return nil, invalid("%w", err)
		}
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, invalid("%w", err)
	}
	name := "MySQL, " + config.DBName + " at " + config.Addr
	open := func(context.Context) (*sql.DB, error) { return pooled(sql.OpenDB(connector)), nil }
	return &Target{name: name, dialect: lease.MySQL, open: open}, nil
}

// parametersOf reads the parameters of a URL of MySQL.
func parametersOf(address *url.URL) (map[string]string, error) {
	query, err := url.ParseQuery(address.RawQuery)
	if err != nil {
		return nil, invalid("the parameters of the connection string cannot be parsed")
	}
	parameters := map[string]string{}
	for name, values := range query {
		if !slices.Contains(mysqlParameters, name) {
			suggestion := ""
			if near := nearest.Of(name, mysqlParameters); near != "" {
				suggestion = "did you mean " + near + "? "
			}
			return nil, invalid("unknown parameter %q for MySQL: %sknown are %s", name, suggestion, strings.Join(mysqlParameters, ", "))
		}
		if len(values) > 1 || values[0] == "" {
			return nil, invalid("the parameter %s must have one value", name)
		}
		parameters[name] = values[0]
	}
	return parameters, nil
}

// setAddress says where the server is: at a host, or at a Unix socket.
func setAddress(config *mysql.Config, address *url.URL, socket string) error {
	host, port := address.Hostname(), address.Port()
	switch {
	case socket != "" && host != "" && host != "localhost":
		return invalid("a host and a socket exclude each other: leave one out")
	case socket != "":
		config.Net, config.Addr = "unix", socket
	case host == "":
		return invalid("the connection string names no host: mysql://user:password@host:3306/database, " +
			"or mysql://user@localhost/database?socket=/path")
	default:
		port = cmp.Or(port, "3306")
		config.Net, config.Addr = "tcp", net.JoinHostPort(host, port)
	}
	return nil
}
