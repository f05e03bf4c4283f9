package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A run of two rounds prints, records and draws what it measured, with another system in
// the same rounds.
func TestRunRecordsItsRounds(t *testing.T) {
	pgtest.Long(t)
	folder := t.TempDir()
	o := options{
		only: "sigkill,shutdown", rounds: 2, slowRounds: 1, roles: 1, lease: 3 * time.Second, slow: time.Nanosecond, // every round is slow
		json: filepath.Join(folder, "r.json"), plot: filepath.Join(folder, "p.svg"),
	}
	var printed strings.Builder
	if err := o.run(t.Context(), &printed); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	for _, want := range []string{"\nsigkill ", "\nshutdown ", "\nsigkill: 2 rounds, p50", "2 of 2 rounds over 0.0 ms", "up to ms"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, printed.String())
		}
	}
	r, err := readRecord(o.json)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Faults) != 2 || r.Run.PostgreSQL == "" || r.Run.Rounds != 2 {
		t.Fatalf("got %+v, want two faults with their parameters", r)
	}
	for _, f := range r.Faults {
		if f.Summary == nil || f.Summary.Rounds != 2 || len(f.Rounds) != 2 || f.Summary.Ratio == nil {
			t.Fatalf("%s: got %+v, want two rounds beside the bare waiter", f.Fault, f)
		}
		noticed := 0
		for _, one := range f.Rounds {
			if one.Took <= 0 || one.Cause == "" || one.Facts.Tries < 1 || one.Facts.Trying <= 0 {
				t.Errorf("%s: got %+v, want a round with its cause and at least one attempt", f.Fault, one)
			}
			if one.Facts.Noticed != nil {
				noticed++
			}
		}
		if f.Fault == "sigkill" && noticed == 0 { // the server logs a death when the locks are free, which can be after a round
			t.Errorf("%s: got %+v, want when the server noticed the death", f.Fault, f.Rounds)
		}
	}
	if svg, err := os.ReadFile(o.plot); err != nil || !strings.HasPrefix(string(svg), "<svg") {
		t.Errorf("got the plot %.20q, %v", svg, err)
	}
	again := options{from: o.json, plot: filepath.Join(folder, "again.svg")}
	if err := again.run(t.Context(), &printed); err != nil {
		t.Error(err)
	}
}
