package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// demoDatabase is the private database of the demonstration.
type demoDatabase struct {
	name     string // for people
	dsn      string
	settings []string // flags of its nodes
	close    func() error
}

// newDemoDatabase starts a private PostgreSQL, or where this machine has none, or
// it is not wanted, makes a file of SQLite. No other user of the machine can connect
// to either: both are in a directory of this user alone. Nothing is left behind when it is
// closed or this process ends.
func newDemoDatabase(ctx context.Context, sqlite bool) (*demoDatabase, error) {
	if sqlite {
		return newDemoFile("SQLite")
	}
	if _, err := pgserver.Find(""); errors.Is(err, pgserver.ErrNotInstalled) {
		return newDemoFile("SQLite, since no PostgreSQL server is found here")
	}
	box, err := pgserver.NewSandbox()
	if err != nil {
		return nil, fmt.Errorf("the demonstration needs a private PostgreSQL: %w", err)
	}
	server, err := box.Start(ctx, pgserver.Options{Private: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the demonstration needs a private PostgreSQL: %w", err), box.Close())
	}
	return &demoDatabase{name: "PostgreSQL " + server.Installation.Version, dsn: server.SocketDSN(), close: box.Close}, nil
}

// demoLease is how long the nodes wait for a silent leader where they cannot
// notice its death.
const demoLease = "1s"

func newDemoFile(name string) (*demoDatabase, error) {
	box, err := sandbox.New(sandbox.Kind{Name: "demo", Accounts: []string{"nobody"}, PIDFile: "none", Signal: "TERM"})
	if err != nil {
		return nil, fmt.Errorf("the demonstration needs a directory: %w", err)
	}
	return &demoDatabase{
		name: fmt.Sprintf("%s, with leases of %s", name, demoLease), dsn: "sqlite:" + filepath.Join(box.Directory, "demo.db"),
		settings: []string{"--lease", demoLease}, close: box.Close,
	}, nil
}
