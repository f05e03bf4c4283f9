package pgdial

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// forever is the delay of a server that never answers.
const forever = time.Duration(-1)

// slowHosts returns a configuration for servers in memory, for tests in a bubble. delay
// says how long the server takes to answer the next connection.
func slowHosts(t *testing.T, hosts int, parameters string, delay func() time.Duration) *pgx.ConnConfig {
	t.Helper()
	addresses := []string{"192.0.2.1:5432", "192.0.2.2:5432"}[:hosts]
	config := several(t, addresses, "sslmode=disable "+parameters)
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.DialFunc = dialPipe(t.Context(), delay)
	return config
}

// dialPipe returns a function that connects to a server in memory.
func dialPipe(ctx context.Context, delay func() time.Duration) pgconn.DialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		wait := delay()
		go func() { // ends with the connection or the test
			defer func() { _ = server.Close() }()
			var answers <-chan time.Time
			if wait != forever {
				answers = time.After(wait)
			}
			backend := pgproto3.NewBackend(server, server)
			if _, err := backend.ReceiveStartupMessage(); err != nil {
				return
			}
			select {
			case <-answers:
				serve(backend)
			case <-ctx.Done():
			}
		}()
		return client, nil
	}
}

// serve accepts a connection, and answers as a primary does.
func serve(backend *pgproto3.Backend) {
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	backend.Send(ready)
	var row []string
	for backend.Flush() == nil {
		message, err := backend.Receive()
		if err != nil {
			return
		}
		switch m := message.(type) {
		case *pgproto3.Terminate:
			return
		case *pgproto3.Query: // SHOW pool_version
			backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42704", Message: "unrecognized configuration parameter"})
			backend.Send(ready)
		case *pgproto3.Parse:
			if row = []string{"1"}; m.Query == examine {
				row = []string{"false", "off", "", "0", "1", "PostgreSQL 15.0"}
			}
			backend.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			backend.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			fields := make([]pgproto3.FieldDescription, len(row))
			for i := range fields {
				fields[i] = pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}
			}
			backend.Send(&pgproto3.RowDescription{Fields: fields})
		case *pgproto3.Execute:
			values := make([][]byte, len(row))
			for i, value := range row {
				values[i] = []byte(value)
			}
			backend.Send(&pgproto3.DataRow{Values: values})
			backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		case *pgproto3.Sync:
			backend.Send(ready)
		}
	}
}
