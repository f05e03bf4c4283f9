package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// demoDatabase is the demonstration's private database.
type demoDatabase struct {
	name     string // display name
	dsn      string
	settings []string // flags of its nodes
	close    func() error
}

// newDemoDatabase starts a private PostgreSQL server or, if this machine has
// none or sqlite is set, creates an SQLite file. Both are in a directory of
// this user, so other users of the machine cannot connect. Nothing remains
// after close or the end of this process.
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

// demoLease is how long the nodes wait for a silent leader if they cannot
// detect its death.
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
