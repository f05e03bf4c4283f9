//go:build linux

package guardian

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A guardian that took long to start follows the orders that extend trust before it
// decides that it is too late, and before it asks the command to end.
func TestSlowGuardianFollowsExtendedTrust(t *testing.T) {
	for name, first := range map[string]limits{
		"when all would be killed":               {Grace: time.Second, Lead: time.Second, Deadline: now().add(time.Second)},
		"when trust would have ended":            {Grace: time.Second, Lead: time.Second, Deadline: now()},
		"when the command would be asked to end": {Grace: time.Hour, Lead: time.Second, Deadline: now().add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			near, far, err := socketPair()
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			// The guardian finds both orders when it has started.
			err = errors.Join(send(near, order{Begin: &first}), send(near, order{Deadline: now().add(3 * time.Hour)}))
			if err != nil {
				t.Fatal(err)
			}
			guardian := exec.Command("/proc/self/exe", CommandName, "/bin/sh", "sh", "-c", "trap 'exit 9' TERM; for i in 1 2 3 4; do sleep 0.05; done; exit 4")
			guardian.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			guardian.ExtraFiles = []*os.File{far}
			err = guardian.Start()
			_ = far.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = near.Close() // it kills what it may have left
				_ = guardian.Wait()
			}()
			_ = near.SetReadDeadline(time.Now().Add(patience))
			reports := json.NewDecoder(near)
			var begins, started, ended report
			if err := reports.Decode(&begins); err != nil || !begins.Begins {
				t.Fatalf("the command was not started, although trust had been extended: %+v, %v", begins, err)
			}
			if err := reports.Decode(&started); err != nil || started.PID == 0 {
				t.Fatalf("the command was not started, although trust had been extended: %+v, %v", started, err)
			}
			if err := reports.Decode(&ended); err != nil || ended.Gone == nil || *ended.Gone != (end{Code: 4}) {
				t.Errorf("the command did not end on its own, although trust had been extended: %+v, %v", ended.Gone, err)
			}
		})
	}
}
