package dialects

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// badSettings are settings of MariaDB with which leases do not work, by name.
var badSettings = map[string]string{
	"binlog_format":          "SET GLOBAL binlog_format = 'STATEMENT'",
	"completion_type":        "SET GLOBAL completion_type = 'CHAIN'",
	"autocommit":             "SET GLOBAL autocommit = 0",
	"tx_read_only":           "SET GLOBAL tx_read_only = 1",
	"sql_safe_updates":       "SET GLOBAL sql_safe_updates = 1",
	"sql_mode":               "SET GLOBAL sql_mode = 'EMPTY_STRING_IS_NULL,STRICT_ALL_TABLES'",
	"sql_select_limit":       "SET GLOBAL sql_select_limit = 1",
	"max_join_size":          "SET GLOBAL max_join_size = 1",
	"enforce_storage_engine": "SET GLOBAL enforce_storage_engine = 'Aria'",
}

// fault returns the failure that doctor reports, and the error of a new node. Both are nil
// if both are well.
func fault(t *testing.T, source string) (found *doctor.Finding, refused error) {
	t.Helper()
	db, err := sql.Open("mysql", source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	backend := newBackend(t, db, lease.MySQL, lease.Config{})
	defer backend.Close()
	for _, f := range backend.Diagnose(soon(t)) {
		if f.Severity == doctor.Failure {
			found = &f
			break
		}
	}
	node, err := tenure.Open(soon(t), backend, tenure.Config{Lease: time.Second})
	if err != nil {
		return found, err
	}
	defer node.Close(context.Background())
	election, err := node.Election(tenure.NamedRole(backendRole))
	if err == nil {
		err = election.Start(soon(t))
	}
	if err == nil {
		_, err = election.WaitForLeadership(soon(t))
	}
	return found, err
}

// Doctor and a node name a setting with which leases do not work and the statement that
// corrects it. The node stops. After the statement, a node leads.
func TestBackendRefusesBadSettings(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{Settings: map[string]string{"log_bin": "binlog"}})
	for name, set := range badSettings {
		t.Run(name, func(t *testing.T) {
			source := server.DSN(server.Database(t))
			server.Execute(t, set)
			defer server.Execute(t, "SET GLOBAL "+name+" = DEFAULT") // for the next setting, if this one is not corrected
			found, refused := fault(t, source)
			if found == nil || found.Name != "settings" || !strings.Contains(found.Detail, name) {
				t.Fatalf("%s: doctor finds %+v; want the setting %s", set, found, name)
			}
			if !errors.Is(refused, tenure.ErrRefused) || !strings.Contains(refused.Error(), found.Detail) || !strings.Contains(refused.Error(), found.Advice) {
				t.Errorf("%s: the node: %v; want ErrRefused with %q and %q", set, refused, found.Detail, found.Advice)
			}
			statement, _, _ := strings.Cut(found.Advice, ", and ")
			server.Execute(t, statement)
			if found, refused := fault(t, source); found != nil || refused != nil {
				t.Errorf("after %s: doctor finds %+v, the node: %v", statement, found, refused)
			}
		})
	}
}

// Tables without transactions are refused with the statement that converts them.
func TestBackendRefusesTablesWithoutTransactions(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	source := mariaDB(t)
	if found, refused := fault(t, source); found != nil || refused != nil {
		t.Fatalf("a new database: %+v, %v", found, refused)
	}
	db := kinds[3].connect(t, source)
	execute(t, db, "ALTER TABLE tenure_lease_seats ENGINE = MyISAM")
	found, refused := fault(t, source)
	if found == nil || found.Name != "tables" || !strings.Contains(found.Detail, "tenure_lease_seats is MyISAM") {
		t.Fatalf("doctor finds %+v; want the table", found)
	}
	if !errors.Is(refused, tenure.ErrRefused) || !strings.Contains(refused.Error(), found.Advice) {
		t.Errorf("the node: %v; want ErrRefused with %q", refused, found.Advice)
	}
	execute(t, db, found.Advice)
	if again, refused := fault(t, source); again != nil || refused != nil {
		t.Errorf("after %s: doctor finds %+v, the node: %v", found.Advice, again, refused)
	}
}

// Doctor reports a server that refuses the writes of an ordinary user. Nodes retry, since
// a failover can end that.
func TestBackendReadOnlyServerIsDiagnosed(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{})
	database := server.Database(t)
	source := strings.Replace(server.DSN(database), "root@", "app@", 1)
	server.Execute(t, "CREATE USER app@`%`; GRANT ALL ON `"+database+"`.* TO app@`%`")
	if found, refused := fault(t, source); found != nil || refused != nil {
		t.Fatalf("a writable server: %+v, %v", found, refused)
	}
	server.Execute(t, "SET GLOBAL read_only = 1")
	backend := newBackend(t, kinds[3].connect(t, source), lease.MySQL, lease.Config{})
	var found *doctor.Finding
	for _, f := range backend.Diagnose(soon(t)) {
		if f.Name == "writes" {
			found = &f
		}
	}
	if found == nil || found.Severity != doctor.Failure || !strings.Contains(found.Detail, dberr.ErrReadOnly.Error()) {
		t.Errorf("doctor finds %+v; want a failure with %q", found, dberr.ErrReadOnly)
	}
}
