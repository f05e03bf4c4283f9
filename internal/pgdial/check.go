package pgdial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/grantee"
)

// examine reads the conditions for the use of a connection. The casts make text of it
// before any setting is made.
const examine = `
SELECT
    pg_catalog.pg_is_in_recovery()::text,
    pg_catalog.current_setting('default_transaction_read_only'),
    coalesce(pg_catalog.host(pg_catalog.inet_client_addr()), ''),
    coalesce(pg_catalog.inet_client_port(), 0)::text,
    pg_catalog.pg_backend_pid()::text,
    pg_catalog.version()`

// sourceOf asks where the value of a setting comes from.
const sourceOf = `SELECT source FROM pg_catalog.pg_settings WHERE name = $1`

// check requires a direct connection to a writable primary, and makes the settings of its
// use. Its errors are decisions about the server unless the connection failed, see
// decided.
func (d *Dialer) check(ctx context.Context, conn *pgconn.PgConn, o Options) error {
	err := d.examine(ctx, conn, o)
	if errors.Is(err, tenure.ErrTenure) {
		return &decision{err}
	}
	return err
}

// decision is an error about the nature of a server, not about a failure.
type decision struct{ error }

func (e *decision) Unwrap() error { return e.error }

// decided reports whether every host was reached and refused: one that is down
// may be the primary.
func decided(err error) bool {
	if _, ok := err.(*decision); ok { //nolint:errorlint // each branch is looked at
		return true
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if !decided(one) {
				return false
			}
		}
		return len(e.Unwrap()) > 0
	case interface{ Unwrap() error }:
		return decided(e.Unwrap())
	}
	return false
}

// Explain makes a failed connection attempt final only if every named host has been
// reached and refused: one that is down may be the primary.
func Explain(err error) error {
	readOnly := errors.Is(err, dberr.ErrReadOnly)
	switch {
	case decided(err) && !readOnly:
		return err
	case errors.Is(err, tenure.ErrRefused) && readOnly:
		// The chain is cut, or the error would match the refusal of one host.
		return As(dberr.ErrReadOnly, errors.New(err.Error()))
	case errors.Is(err, tenure.ErrRefused):
		return As(tenure.ErrConnection, errors.New(err.Error())) // as above
	case readOnly:
		return err
	}
	return As(tenure.ErrConnection, err)
}

func (d *Dialer) examine(ctx context.Context, conn *pgconn.PgConn, o Options) error {
	row, err := read(ctx, conn, examine)
	if err != nil {
		return err
	}
	if err := Idle(conn); err != nil {
		return err
	}
	if len(row) != 6 {
		return fmt.Errorf("examine the server: %d columns", len(row))
	}
	if o.Pooled {
		if row[0] != "false" {
			return errInRecovery()
		}
		return nil
	}
	// Before any setting is made: through a pooler others would get it.
	if row[4] != strconv.FormatUint(uint64(conn.PID()), 10) {
		return fmt.Errorf("%w: the server process that answers is not the one that accepted the connection. "+
			"Connect directly to PostgreSQL; session pooling does not suffice either, since a pooler keeps a session, and its locks, after its client has gone", dberr.ErrPooled)
	}
	if row[0] != "false" {
		return errInRecovery()
	}
	if !direct(conn, row[2], row[3]) {
		if err := d.refusePgpool(ctx, conn, o.Use&long != 0); err != nil {
			return err
		}
	}
	overridden := false
	if row[1] != "off" {
		if overridden, err = examineReadOnly(ctx, conn, o.FencedToo); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(row[5], "PostgreSQL ") { // refused later, by its missing features
		return nil
	}
	return apply(ctx, conn, o.Use, o.Limits, overridden)
}

// examineReadOnly reports whether the user's own settings make transactions read-only.
// It returns an error if an operator's do, unless fenced servers are allowed.
func examineReadOnly(ctx context.Context, conn *pgconn.PgConn, fencedToo bool) (overridden bool, err error) {
	source, err := read(ctx, conn, sourceOf, "default_transaction_read_only")
	if err != nil {
		return false, err
	}
	overridden = len(source) > 0 && byUser(source[0])
	if !overridden && !fencedToo {
		return false, errFenced(source)
	}
	return overridden, nil
}

func errInRecovery() error {
	return fmt.Errorf("%w and takes no writes: connect to the primary, or name every host in the connection string", dberr.ErrInRecovery)
}

// byUser reports whether a setting was made for a user, a database or a
// connection, and not for the whole server.
func byUser(source string) bool {
	switch source {
	case "user", "database", "database user", "client", "session", "global":
		return true
	}
	return false
}

func errFenced(source []string) error {
	return fmt.Errorf("%w by its own configuration (default_transaction_read_only = on, %s), which fences the server, so no node leads here. "+
		"To lift it: ALTER SYSTEM RESET default_transaction_read_only, or change its configuration file or command line; then SELECT pg_reload_conf()",
		dberr.ErrReadOnly, strings.Join(source, ""))
}

// Idle returns an error if a connection is in a transaction although its last
// statement was none of a transaction: Pgpool-II in raw mode begins one before a
// write and leaves it open.
func Idle(conn *pgconn.PgConn) error {
	if status := conn.TxStatus(); status != 'I' && !conn.IsClosed() {
		return fmt.Errorf("%w: the server is still in a transaction (status %q) after a statement that should have committed: "+
			"Pgpool-II in raw mode causes this. Connect directly to PostgreSQL", dberr.ErrPooled, status)
	}
	return nil
}

// direct reports whether the server sees the very socket of this process. If
// not, there may be an address translation between them, or a pooler.
func direct(conn *pgconn.PgConn, address, port string) bool {
	local, ok := conn.Conn().LocalAddr().(*net.TCPAddr)
	if !ok || port != strconv.Itoa(local.Port) {
		return false
	}
	seen, err := netip.ParseAddr(address)
	return err == nil && seen.Unmap() == local.AddrPort().Addr().Unmap().WithZone("")
}

// refusePgpool sends a query only Pgpool-II answers. PostgreSQL does not know the
// parameter and logs an error. So unless always is set, an address is asked once, and
// again after a failure.
func (d *Dialer) refusePgpool(ctx context.Context, conn *pgconn.PgConn, always bool) error {
	remote := conn.Conn().RemoteAddr().String()
	if !always && d.isServer(remote) {
		return nil
	}
	results, err := conn.Exec(ctx, "SHOW pool_version").ReadAll()
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		d.noteServer(remote)
		return nil
	case err != nil:
		return err
	}
	version := ""
	if len(results) > 0 && len(results[0].Rows) > 0 && len(results[0].Rows[0]) > 0 {
		version = " " + string(results[0].Rows[0][0])
	}
	return fmt.Errorf("%w: Pgpool-II%s answers. Connect directly to PostgreSQL, or name every host in the connection string: "+
		"Tenure finds the primary among them", dberr.ErrPooled, version)
}

// setAll makes settings, where they are not so already: some may be changed by a
// superuser only.
const setAll = `
SELECT pg_catalog.count(pg_catalog.set_config(s.name, s.value, false))
FROM unnest($1::text[], $2::text[]) AS s(name, value)
WHERE (pg_catalog.current_setting(s.name, true) IS NOT NULL OR s.name = '` + IncarnationSetting + `')
    AND pg_catalog.current_setting(s.name, true) IS DISTINCT FROM s.value
    AND (s.name <> 'synchronous_commit' OR pg_catalog.current_setting('synchronous_commit') <> 'remote_apply')`

// Apply makes the settings of a use on an examined connection.
func Apply(ctx context.Context, conn *pgx.Conn, use Use, limits Limits) error {
	return apply(ctx, conn.PgConn(), use, limits, false)
}

// Settings returns the statement of [Apply] and its parameters. Its error is one for
// [ExplainSettings].
func Settings(use Use, limits Limits) (sql, names, values string) {
	n, v := changed(use, limits, false)
	return setAll, array(n), array(v)
}

// ExplainSettings returns the error of Apply for an error of its statement.
func ExplainSettings(ctx context.Context, conn *pgx.Conn, err error) error {
	return explain(ctx, conn.PgConn(), err)
}

// changed returns the settings to make.
func changed(use Use, limits Limits, override bool) (names, values []string) {
	names, values = settings(use, limits)
	if !override { // left to the server: a reload can fence it
		for i, name := range names {
			if name == "default_transaction_read_only" {
				names, values = append(names[:i:i], names[i+1:]...), append(values[:i:i], values[i+1:]...)
				break
			}
		}
	}
	return names, values
}

func apply(ctx context.Context, conn *pgconn.PgConn, use Use, limits Limits, override bool) error {
	names, values := changed(use, limits, override)
	_, err := read(ctx, conn, setAll, array(names), array(values))
	return explain(ctx, conn, err)
}

// explain adds the statement to mend a setting this user may not change.
func explain(ctx context.Context, conn *pgconn.PgConn, err error) error {
	const denied = "42501"
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return wrap(err)
	}
	if refused.Code != denied {
		return wrap(err)
	}
	for _, s := range table {
		if !strings.Contains(refused.Message, `"`+s.name+`"`) {
			continue
		}
		source, sourceErr := read(ctx, conn, mendOf, s.name)
		if sourceErr != nil || len(source) == 0 {
			break
		}
		return fmt.Errorf("%w: %s must be %s (%s) and this user may not change it: %s: %w",
			dberr.ErrPrivilege, s.name, s.value(Limits{}), s.why, source[0], err)
	}
	if strings.Contains(refused.Message, " set_config") {
		return fmt.Errorf("%w: GRANT EXECUTE ON FUNCTION set_config(text, text, boolean) TO %s: %w", dberr.ErrPrivilege, grantee.Of(conn), err)
	}
	return wrap(err)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("settings: %w", err)
}

// mendOf returns the statement to take a setting back.
const mendOf = `
SELECT CASE source
    WHEN 'user' THEN pg_catalog.format('ALTER ROLE %I RESET %I', session_user, name)
    WHEN 'database' THEN pg_catalog.format('ALTER DATABASE %I RESET %I', pg_catalog.current_database(), name)
    WHEN 'database user' THEN pg_catalog.format('ALTER ROLE %I IN DATABASE %I RESET %I', session_user, pg_catalog.current_database(), name)
    WHEN 'global' THEN pg_catalog.format('ALTER ROLE ALL RESET %I', name)
    WHEN 'client' THEN pg_catalog.format('remove %s from the connection string', name)
    ELSE pg_catalog.format('ALTER SYSTEM RESET %I', name)
END
FROM pg_catalog.pg_settings
WHERE name = $1`

// read runs a statement and returns its first row as text, none if there is none.
func read(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) ([]string, error) {
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = []byte(arg)
	}
	result := conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil || len(result.Rows) == 0 {
		return nil, result.Err
	}
	row := make([]string, len(result.Rows[0]))
	for i, value := range result.Rows[0] {
		row[i] = string(value)
	}
	return row, nil
}

// array writes an array as PostgreSQL reads it.
func array(elements []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	quoted := make([]string, len(elements))
	for i, element := range elements {
		quoted[i] = `"` + escape.Replace(element) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}
