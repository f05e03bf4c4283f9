// Package install creates, upgrades, checks, repairs and removes an installation: the tables
// of package postgres in one schema, their mode, and the privileges on them.
package install

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Installation is an installation: the tables in one schema with one prefix, and who may use
// them. It is safe for concurrent use.
type Installation struct {
	Names     link.Names
	Schema    *schema.Schema
	Core      *schema.Feature // the tables of elections
	Connector *link.Connector
	Reader    *link.Reader
	Manual    bool // sessions do not migrate
}

// ReadInstallation reads the id of an installation.
const ReadInstallation = `SELECT id FROM {installation}`

// NodeSpace is the first of the two integers of node locks. It keeps the installations of
// one database apart.
func NodeSpace(installation uuid.UUID) int32 {
	sum := sha256.Sum256(append(installation[:], "nodes"...))
	return int32(binary.BigEndian.Uint32(sum[:4]))
}

// ReadSpace is NodeSpace in SQL.
const ReadSpace = `(SELECT ('x' || left(encode(sha256(uuid_send(id) || 'nodes'::bytea), 'hex'), 8))::bit(32)::int FROM {installation})`

// invalidParameter reports an unusable parameter.
func invalidParameter(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
