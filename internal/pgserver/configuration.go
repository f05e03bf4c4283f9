package pgserver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Configure changes settings of the server and, if it runs, makes it read them.
// The server acts on that shortly after Configure returned; settings that need a
// restart wait for one.
func (s *Server) Configure(settings map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.settings, settings)
	if err := s.writeConfiguration(); err != nil {
		return err
	}
	if !s.running() {
		return nil
	}
	return s.process.Signal(syscall.SIGHUP)
}

// writeConfiguration replaces the files that initdb made. s.mu is held.
func (s *Server) writeConfiguration() error {
	settings := maps.Clone(s.settings)
	if _, ok := settings["listen_addresses"]; !ok {
		settings["listen_addresses"] = s.Host
	}
	settings["port"] = strconv.Itoa(s.Port)
	settings["unix_socket_directories"] = s.Socket
	settings["logging_collector"] = "off"
	settings["dynamic_shared_memory_type"] = "mmap" // in the data directory, also after a SIGKILL

	var configuration strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&configuration, "%s = %s\n", name, quote(settings[name]))
	}
	access := slices.Concat(s.hba, []string{
		"local all,replication all trust",
		"host all,replication all 127.0.0.1/32 trust",
		"",
	})
	return errors.Join(
		s.write("postgresql.conf", configuration.String()),
		s.write("pg_hba.conf", strings.Join(access, "\n")),
	)
}

// quote writes a value as postgresql.conf wants it.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(value) + "'"
}

func (s *Server) write(name, content string) error {
	path := filepath.Join(s.Data, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return s.sandbox.files.Own(path)
}
