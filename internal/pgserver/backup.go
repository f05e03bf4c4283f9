package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// backUp copies the data of the running server to a new directory.
func (s *Server) backUp(ctx context.Context, target string) error {
	program := s.Installation.program("pg_basebackup")
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		return s.backUpFiles(ctx, target)
	}
	return s.sandbox.files.Execute(ctx, program, "--pgdata", target,
		"--host", s.Socket, "--port", strconv.Itoa(s.Port), "--username", Superuser,
		"--checkpoint", "fast", "--wal-method", "stream", "--no-sync")
}

// backUpFiles does what pg_basebackup does, for installations without programs
// of clients: see "Making a Base Backup Using the Low Level API" in PostgreSQL's
// manual.
func (s *Server) backUpFiles(ctx context.Context, target string) error {
	start, stop := "SELECT pg_backup_start('replica', true)", "SELECT labelfile FROM pg_backup_stop(false)"
	if s.Installation.Major < 15 {
		start, stop = "SELECT pg_start_backup('replica', true, false)", "SELECT labelfile FROM pg_stop_backup(false, false)"
	}
	conn, err := pgx.Connect(ctx, s.SocketDSN())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // the result of the backup matters more
	if _, err := conn.Exec(ctx, start); err != nil {
		return err
	}
	if err := s.copyFiles(target, ".", notBackedUp); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, stop).Scan(&label); err != nil {
		return err
	}
	if err := s.copyFiles(target, "pg_wal", nil); err != nil {
		return err
	}
	return s.create(filepath.Join(target, "backup_label"), func(file *os.File) error {
		_, err := file.WriteString(label)
		return err
	})
}

// notBackedUp are the files that belong to the running server, and directories
// whose content does.
var notBackedUp = []string{
	"postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans",
}

// copyFiles copies a part of the data directory. Of the skipped directories it
// makes empty ones. Files that vanish while the server runs are not missed: the
// log that the copy replays removes them too.
func (s *Server) copyFiles(target, part string, skip []string) error {
	return filepath.WalkDir(filepath.Join(s.Data, part), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.Data, path)
		if err != nil {
			return err
		}
		skipped := slices.Contains(skip, name)
		switch {
		case entry.IsDir():
			if err := s.makeDirectory(filepath.Join(target, name)); err != nil || !skipped {
				return err
			}
			return fs.SkipDir
		case skipped:
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		default:
			return s.copyFile(path, filepath.Join(target, name))
		}
	})
}

func (s *Server) makeDirectory(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return s.sandbox.files.Own(path)
}

func (s *Server) copyFile(source, target string) error {
	content, err := os.Open(source)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer content.Close() // it was only read
	return s.create(target, func(file *os.File) error {
		_, err := io.Copy(file, content)
		return err
	})
}

// create makes a file of the server's account.
func (s *Server) create(path string, fill func(*os.File) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(file), file.Close()); err != nil {
		return err
	}
	return s.sandbox.files.Own(path)
}
