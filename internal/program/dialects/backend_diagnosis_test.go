package dialects

import (
	"testing"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/lease"
)

// TestBackendDiagnoseFindsNoFailure: a healthy database has no failures, without tables and
// with them.
func TestBackendDiagnoseFindsNoFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			backend := newBackend(t, kind.open(t), kind.dialect, lease.Config{})
			check := func(when string) {
				t.Helper()
				findings := backend.Diagnose(soon(t))
				if len(findings) == 0 {
					t.Errorf("%s: no findings", when)
				}
				for _, f := range findings {
					if f.Severity == doctor.Failure {
						t.Errorf("%s: %+v", when, f)
					}
				}
			}
			check("without tables")
			if err := backend.Migrate(soon(t)); err != nil {
				t.Fatal(err)
			}
			check("with tables")
		})
	}
}
