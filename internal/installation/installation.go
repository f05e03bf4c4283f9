// Package installation has the common parts of sessions and leases, because both could
// elect in one PostgreSQL database: the lock of an installation's nodes, and the record of
// its mode.
package installation

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/exactly-one/tenure/dberr"
)

// LockKey is the key, a pair, of the advisory lock of an installation: the first eight
// bytes of the SHA-256 of "tenure installation", the schema and the prefix, each ended by
// a zero byte. It depends on no stored value: nodes of a removed installation still hold
// the lock of its possible successor.
//
// A node of the installation holds the lock shared. A process that creates or
// removes the installation, or changes its mode, holds it exclusively.
func LockKey(schema, prefix string) (a, b int32) {
	sum := sha256.Sum256([]byte("tenure installation\x00" + schema + "\x00" + prefix + "\x00"))
	return int32(binary.BigEndian.Uint32(sum[:4])), int32(binary.BigEndian.Uint32(sum[4:8]))
}

// leaseInfix ends the prefix of the tables of leases. They may be in the same schema as
// the tables of sessions.
const leaseInfix = "lease_"

// PrefixOfLeases returns the prefix of the installation of leases in tables with a prefix.
func PrefixOfLeases(prefix string) string { return strings.TrimSuffix(prefix, leaseInfix) }

// SessionsOfLeases returns the possible names of the table with the sessions of leases in
// an installation.
func SessionsOfLeases(prefix string) []string {
	return []string{prefix + leaseInfix + "sessions", prefix + "sessions"}
}

// The modes of an installation.
const (
	Sessions = "sessions"
	Leases   = "leases"
)

// LeasesVersion is this program's version of the tables of leases.
const LeasesVersion = 1

// Statements on the record of the mode, a table with at most one row.
const (
	CreateMode = `
CREATE TABLE IF NOT EXISTS {installation} (
    mode text NOT NULL CHECK (mode IN ('sessions', 'leases')),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
)`
	ReadMode = `SELECT mode FROM {installation}`
)

// Table is the name of the record's table without its prefix.
const Table = "installation"

// Refuse returns an error if an installation has another mode than wanted. An
// empty mode is none yet.
func Refuse(mode, wanted, schema, prefix string) error {
	if mode == "" || mode == wanted {
		return nil
	}
	return fmt.Errorf("%w: the installation in schema %q with prefix %q elects by %s, and %s would elect a second leader: %s, or end all nodes and run tenure migrate mode %s",
		dberr.ErrWrongMode, schema, prefix, mode, wanted, otherway[mode], wanted)
}

// otherway is how to elect in the mode of the installation.
var otherway = map[string]string{
	Sessions: "use a connection string without tenure_mode=lease, or package postgres",
	Leases:   "use a connection string with tenure_mode=lease, or package lease",
}
