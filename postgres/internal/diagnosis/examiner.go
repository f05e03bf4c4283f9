package diagnosis

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/records"
)

// Examiner examines an installation and its server.
type Examiner struct {
	Names        link.Names
	Reader       *link.Reader
	Installation *install.Installation
	Records      *records.Records
	Open         func(context.Context) (Trial, error)
	LocksIgnored error // the refusal of a server that ignores locks
}

// Trial is a session for a diagnosis, with its two connections.
type Trial interface {
	// Conn is the session connection.
	Conn() *pgx.Conn
	// ExamineServer refuses a server if elections would not be safe on it, and returns
	// its version.
	ExamineServer(ctx context.Context) (version int, err error)
	// Rehearse performs the steps of a session before it campaigns, and undoes them.
	Rehearse(ctx context.Context) error
	// Close closes the connections.
	Close()
}

type diagnosis struct {
	*Examiner
	findings []doctor.Finding
	works    bool // a session does
}

func (d *diagnosis) add(name string, severity doctor.Severity, detail, advice string) {
	d.findings = append(d.findings, doctor.Finding{Name: name, Severity: severity, Detail: detail, Advice: advice})
}

// fail adds an error as a finding, split into the problem and the remedy.
func (d *diagnosis) fail(name string, err error) {
	d.add(name, doctor.Failure, err.Error(), "")
}
