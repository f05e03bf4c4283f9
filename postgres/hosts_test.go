package postgres

import (
	"fmt"
	"net"
	"testing"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A host that accepts connections and never answers keeps neither a node nor a
// read from the primary that is listed after it.
func TestHungHostDoesNotHidePrimary(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the operating system accepts connections
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	dsn := fmt.Sprintf("host=127.0.0.1,%s port=%d,%d user=postgres dbname=postgres connect_timeout=60",
		server.Host, silent.Addr().(*net.TCPAddr).Port, server.Port)
	config := Config{Schema: server.Schema(t)}
	first := open(t, backendOn(t, dsn, config))
	first.take("scheduler")
	b := backendOn(t, dsn, config)
	if leaders, err := b.Leaders(t.Context()); err != nil || len(leaders) != 1 {
		t.Errorf("leaders: %v, %v; want one", leaders, err)
	}
	for _, f := range backendOn(t, dsn, config).Diagnose(t.Context()) {
		if f.Severity == doctor.Failure {
			t.Errorf("the diagnosis: %+v", f)
		}
	}
}
