package mariatest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BinariesVariable names the environment variable that says where to look for
// MariaDB's programs before all other places: directories separated like those
// of PATH.
const BinariesVariable = "TENURE_MARIADB_BIN"

// ErrNotInstalled means that MariaDB was not found. The message says how to get
// it.
var ErrNotInstalled = errors.New("MariaDB is missing")

// usualPlaces are where distributions put the programs outside of PATH.
var usualPlaces = []string{
	"/usr/sbin", "/usr/bin", "/usr/libexec", // Debian, Fedora
	"/usr/local/sbin", "/usr/local/bin", "/usr/local/libexec", // BSD, Homebrew on Intel
	"/opt/homebrew/bin",                                // Homebrew on Apple silicon
	"/usr/local/mysql/bin", "/usr/local/mysql/scripts", // MariaDB's own archives
}

// installation is where the programs are.
type installation struct {
	server     string // the server itself
	initialize string // makes a data directory
	client     string // runs statements
}

// names lists the names of each program, today's first.
var names = struct{ server, initialize, client []string }{
	server:     []string{"mariadbd", "mysqld"},
	initialize: []string{"mariadb-install-db", "mysql_install_db"},
	client:     []string{"mariadb", "mysql"},
}

// find returns the first of each program that this machine has.
func find() (installation, error) {
	directories := filepath.SplitList(os.Getenv(BinariesVariable))
	directories = append(directories, filepath.SplitList(os.Getenv("PATH"))...)
	directories = append(directories, usualPlaces...)
	found := installation{
		server:     program(directories, names.server),
		initialize: program(directories, names.initialize),
		client:     program(directories, names.client),
	}
	if found.server == "" || found.initialize == "" || found.client == "" {
		return installation{}, fmt.Errorf("%w: on Debian and Ubuntu run: apt-get install mariadb-server-core mariadb-client-core, "+
			"elsewhere name the directory of mariadbd, mariadb-install-db and mariadb in %s", ErrNotInstalled, BinariesVariable)
	}
	output, err := exec.Command(found.server, "--no-defaults", "--version").CombinedOutput()
	if err != nil {
		return installation{}, fmt.Errorf("%s --version: %w\n%s", found.server, err, output)
	}
	if !strings.Contains(string(output), "MariaDB") {
		return installation{}, fmt.Errorf("%w: %s is of another make: %s", ErrNotInstalled, found.server, strings.TrimSpace(string(output)))
	}
	return found, nil
}

// program returns the path of the first program found, empty if there is none.
func program(directories, names []string) string {
	for _, directory := range directories {
		for _, name := range names {
			path := filepath.Join(directory, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}
