package records

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/postgres/internal/install"
)

const (
	// ReadKeysOfRoles returns the recorded keys of roles.
	ReadKeysOfRoles = `SELECT role, lock_key FROM {terms} WHERE role = ANY ($1::text[])`

	readRoles = `SELECT role, lock_key FROM {terms} WHERE retired_at IS NULL ORDER BY role COLLATE "C"`

	readLockSessions = `
SELECT
    l.classid::bigint,
    l.objid::bigint,
    l.objsubid,
    coalesce(l.pid, 0),
    coalesce(a.usename::text, ''),
    CASE WHEN l.pid IS NULL THEN 'a prepared transaction' ELSE coalesce(a.application_name, '') END,
    coalesce(host(a.client_addr), ''),
    a.backend_start
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
    AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY l.pid`

	readNodeSessions = `SELECT incarnation, pid, id, name FROM {nodes}`
)

// Holders is the method of the backend with this name.
func (rs *Records) Holders(ctx context.Context, roles ...tenure.Role) ([]history.RoleStatus, error) {
	for _, role := range roles {
		if err := role.Validate(); err != nil {
			return nil, err
		}
	}
	var (
		holders []history.RoleStatus
		space   int32
	)
	err := rs.Reader.Ask(ctx, "read the leaders", func(ctx context.Context, conn *pgx.Conn) error {
		version, err := rs.Installation.ReadVersion(ctx, conn)
		if err != nil {
			return err
		}
		if holders, err = rs.rolesToLookUp(ctx, conn, roles, version > 0); err != nil {
			return err
		}
		nodes := map[nodeSession]history.LockSession{}
		if version > 0 {
			if space, err = rs.readNodeSessions(ctx, conn, nodes); err != nil {
				return err
			}
		}
		return lookUp(ctx, conn, holders, nodes, space)
	})
	if err != nil || len(holders) == 0 {
		return nil, err
	}
	names := make([]string, len(holders))
	for i, h := range holders {
		names[i] = h.Role
	}
	leaders, err := rs.Leaders(ctx, names...)
	if errors.Is(err, dberr.ErrSchema) {
		return holders, nil
	}
	if err != nil {
		return holders, err
	}
	for _, leader := range leaders {
		for i := range holders {
			if holders[i].Role == leader.Role {
				holders[i].Leader = &leader
			}
		}
	}
	return holders, rs.findBlockers(ctx, space, holders)
}

// rolesToLookUp returns the roles with their keys.
func (rs *Records) rolesToLookUp(ctx context.Context, conn *pgx.Conn, roles []tenure.Role, schema bool) ([]history.RoleStatus, error) {
	var holders []history.RoleStatus
	if len(roles) == 0 {
		if !schema {
			return nil, nil
		}
		rows, err := conn.Query(ctx, rs.Names.SQL(readRoles))
		if err != nil {
			return nil, err
		}
		var role, key string
		_, err = pgx.ForEachRow(rows, []any{&role, &key}, func() error {
			parsed, err := parseKey(key)
			holders = append(holders, history.RoleStatus{Role: role, Key: parsed})
			return err
		})
		return holders, err
	}
	var installation uuid.UUID
	if schema {
		if err := conn.QueryRow(ctx, rs.Names.SQL(install.ReadInstallation)).Scan(&installation); err != nil {
			return nil, err
		}
	}
	for _, role := range roles {
		if !schema && role == tenure.NamedRole(role.Name()) {
			return nil, fmt.Errorf("%w: there is none, so the key of %s is not known", dberr.ErrSchema, role)
		}
		holders = append(holders, history.RoleStatus{Role: role.Name(), Key: role.LockKey(installation)})
	}
	if !schema {
		return holders, nil
	}
	return holders, rs.readStoredKeys(ctx, conn, holders)
}

// readStoredKeys replaces the keys of roles by the keys in their rows, if any: nodes lock
// the latter.
func (rs *Records) readStoredKeys(ctx context.Context, conn *pgx.Conn, holders []history.RoleStatus) error {
	names := make([]string, len(holders))
	for i, h := range holders {
		names[i] = h.Role
	}
	rows, err := conn.Query(ctx, rs.Names.SQL(ReadKeysOfRoles), names)
	if err != nil {
		return err
	}
	var name, key string
	_, err = pgx.ForEachRow(rows, []any{&name, &key}, func() error {
		stored, err := parseKey(key)
		for i := range holders {
			if holders[i].Role == name && err == nil {
				holders[i].Key = stored
			}
		}
		return err
	})
	return err
}

// nodeSession identifies a node's session in the lock table.
type nodeSession struct {
	incarnation, pid int32
}

func (rs *Records) readNodeSessions(ctx context.Context, conn *pgx.Conn, nodes map[nodeSession]history.LockSession) (space int32, err error) {
	var installation uuid.UUID
	if err := conn.QueryRow(ctx, rs.Names.SQL(install.ReadInstallation)).Scan(&installation); err != nil {
		return 0, err
	}
	rows, err := conn.Query(ctx, rs.Names.SQL(readNodeSessions))
	if err != nil {
		return 0, err
	}
	var (
		key  nodeSession
		node history.LockSession
	)
	_, err = pgx.ForEachRow(rows, []any{&key.incarnation, &key.pid, &node.NodeID, &node.NodeName}, func() error {
		nodes[key] = node
		return nil
	})
	return install.NodeSpace(installation), err
}

// lookUp finds the holders of the locks. Only the node lock proves a session to be a
// node's, because process ids are reused.
func lookUp(ctx context.Context, conn *pgx.Conn, holders []history.RoleStatus, nodes map[nodeSession]history.LockSession, space int32) error {
	rows, err := conn.Query(ctx, readLockSessions)
	if err != nil {
		return err
	}
	var (
		locks     LockRow
		session   history.LockSession
		started   *time.Time
		byKey     = map[tenure.LockKey][]history.LockSession{}
		processes = map[int32]history.LockSession{} // of nodes
	)
	columns := []any{&locks.High, &locks.Low, &locks.Kind, &session.PID, &session.User, &session.Application, &session.Client, &started}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		key, found := locks.Key(), session
		if started != nil {
			found.Started = *started
		}
		byKey[key] = append(byKey[key], found)
		if node, ok := nodes[nodeSession{key.Key2, found.PID}]; ok && key.Pair && key.Key == int64(space) {
			processes[found.PID] = node
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range holders {
		for _, session := range byKey[holders[i].Key] {
			node := processes[session.PID]
			session.NodeID, session.NodeName = node.NodeID, node.NodeName
			holders[i].Sessions = append(holders[i].Sessions, session)
		}
	}
	return nil
}

// LockRow is an advisory lock as pg_locks shows it.
type LockRow struct {
	High, Low int64 // unsigned 32 bits each
	Kind      int16 // 1: one 64-bit key; 2: a pair
}

// Key returns the key of the lock.
func (r LockRow) Key() tenure.LockKey {
	if r.Kind == 2 {
		return tenure.LockKey{Key: int64(int32(r.High)), Key2: int32(r.Low), Pair: true}
	}
	return tenure.LockKey{Key: r.High<<32 | r.Low}
}

// parseKey reads the result of LockKey.String.
func parseKey(text string) (tenure.LockKey, error) {
	if a, b, pair := strings.Cut(text, ":"); pair {
		first, err1 := strconv.ParseInt(a, 10, 32)
		second, err2 := strconv.ParseInt(b, 10, 32)
		return tenure.LockKey{Key: first, Key2: int32(second), Pair: true}, errors.Join(err1, err2)
	}
	key, err := strconv.ParseInt(text, 10, 64)
	return tenure.LockKey{Key: key}, err
}
