package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A node that cannot start the command of a run tries again five times, and resigns. If
// the policy of the schedule allows that, the next leader repeats the run.
func TestStandbyRepeatsRunThatCannotStart(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	job := "name = \"job\"\n" + never + "\npolicy = \"at-least-once\"\n"
	sick := cronNode(t, place.schedules(t, job+`command = ["`+garbage+`"]`), "sick")
	sick.awaitLog("msg=acquired")
	healthy := cronNode(t, place.schedules(t, job+`command = "echo worked"`), "healthy", "--log-level", "debug")
	healthy.awaitLog("msg=acquire_failed")
	id := place.trigger(t, "job")
	healthy.want("worked")
	if run := place.awaitRun(t, "job", id); run.State != "succeeded" || run.NodeName != "healthy" {
		t.Errorf("the run is %s on %s, want succeeded on healthy", run.State, run.NodeName)
	}
	if starts := strings.Count(sick.log(), "exec format error"); starts != 6 {
		t.Errorf("the node logged %d failed starts, want 6", starts)
	}
	sick.awaitLog("a command ended or could not be run too often in a row: resigning")
}

// A node on which another command runs keeps its role: a run that cannot start has
// failed, and the other command is not interrupted.
func TestRunThatCannotStartInterruptsNoOther(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	node := cronNode(t, place.schedules(t,
		"name = \"job\"\n"+never+"\ncommand = [\""+garbage+"\"]",
		"name = \"long\"\n"+never+"\n"+`command = "echo begun; until test -e `+garbage+`.end; do sleep 0.1; done; echo ended"`), "one")
	node.awaitLog("msg=acquired")
	eventually(t, "the schedules", func() bool {
		return strings.Contains(invoke(t, place.with("cron", "list", "-o", "json")...).stdout, `"long"`)
	})
	long := place.trigger(t, "long")
	node.want("begun")
	if run := place.awaitRun(t, "job", place.trigger(t, "job")); run.State != "failed" || !strings.Contains(run.Error, "exec format error") {
		t.Errorf("the run that cannot start is %s with the error %q, want failed with exec format error", run.State, run.Error)
	}
	if strings.Contains(node.log(), "resigning") {
		t.Error("the node resigned while another command ran")
	}
	if err := os.WriteFile(garbage+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	node.want("ended")
	if run := place.awaitRun(t, "long", long); run.State != "succeeded" {
		t.Errorf("the other run is %s: %s, want succeeded", run.State, run.Error)
	}
}
