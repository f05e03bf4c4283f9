package diagnosis

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

// session tries a session.
func (d *diagnosis) session(ctx context.Context, s Trial) {
	if err := s.Rehearse(ctx); err != nil {
		d.fail("session", err)
		return
	}
	d.works = true
	d.add("session", doctor.OK, "opens like a node's, and its heartbeat is acknowledged", "")
}

const readEncoding = `SELECT current_setting('server_encoding')`

// encoding checks whether names may contain every character.
func (d *diagnosis) encoding(ctx context.Context, conn *pgx.Conn) error {
	var encoding string
	if err := conn.QueryRow(ctx, readEncoding).Scan(&encoding); err != nil {
		return err
	}
	if encoding == server.UnicodeEncoding {
		d.add("encoding", doctor.OK, encoding, "")
		return nil
	}
	d.add("encoding", doctor.Warning, fmt.Sprintf("the database's is %s: role names must be ASCII", encoding),
		"use a database with the encoding UTF8 for other names")
	return nil
}
