package alerts

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/notifier"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// startAlertmanager starts a real Alertmanager that notifies a receiver without
// delay, and returns its URL.
func startAlertmanager(t *testing.T, receiver string) string {
	t.Helper()
	program, err := exec.LookPath("prometheus-alertmanager") // as Debian calls it
	if err != nil {
		if program, err = exec.LookPath("alertmanager"); err != nil {
			t.Fatal("there is no Alertmanager: make prerequisites installs it")
		}
	}
	box, err := sandbox.New(sandbox.Kind{Name: "alertmanager", Accounts: []string{"nobody", "daemon"}, PIDFile: "pid", Signal: "KILL"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	place, err := box.Place()
	if err != nil {
		t.Fatal(err)
	}
	port, err := sandbox.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	config, log := filepath.Join(place, "config.yaml"), filepath.Join(box.Directory, "log")
	text := fmt.Sprintf(`
route: {receiver: all, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: all, webhook_configs: [{url: %q, send_resolved: true}]}]
`, receiver)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(sandbox.Host, strconv.Itoa(port))
	process, err := box.Launch(log, program, "--config.file="+config, "--storage.path="+place, "--web.listen-address="+address, "--cluster.listen-address=")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-process.Done()
	})
	if err := os.WriteFile(filepath.Join(place, "pid"), []byte(strconv.Itoa(process.PID())+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if response, err := client.Get("http://" + address + "/-/ready"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		if process.Ended() || time.Now().After(deadline) {
			t.Fatalf("Alertmanager does not answer\n%s", sandbox.LogTail(log))
		}
	}
}

// TestAlertmanagerReceivesEachChangeOnce: one leader reports to a real Alertmanager that an alert fires,
// the next that it ended; the receiver gets each of them once.
func TestAlertmanagerReceivesEachChangeOnce(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	var mu sync.Mutex
	var told []string
	heard := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(told)
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct {
			Alerts []struct {
				Status              string
				Labels, Annotations map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, a := range message.Alerts {
			told = append(told, a.Labels["alertname"]+" "+a.Labels["severity"]+" "+a.Annotations["summary"]+" "+a.Status)
		}
	}))
	t.Cleanup(receiver.Close)
	w := newWorld(t)
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifier.Alertmanager, URL: startAlertmanager(t, receiver.URL)})
	a := w.start("a", Config{Rules: []Rule{vacant}})
	fires, over := "no_scheduler_leader critical 0 lead firing", "no_scheduler_leader critical 0 lead resolved"
	w.await("that it fires", func() bool { return slices.Equal(heard(), []string{fires}) })
	w.start("b", Config{})
	w.kill(a)
	w.start("c", Config{Rules: []Rule{}})
	w.await("that it is over", func() bool { return slices.Equal(heard(), []string{fires, over}) })
}

// TestFiringAlertsAreRefreshed: firing alerts are sent again to a notifier that forgets them, and to
// no other notifier.
func TestFiringAlertsAreRefreshed(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	requests := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- string(body)
	}))
	t.Cleanup(server.Close)
	set, err := notifiers.Open([]notifiers.Config{{Name: "am", Type: notifier.Alertmanager, URL: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	present := map[alertKey]alert{}
	for i, a := range []alert{
		{State: Firing, Notified: []string{"other", "am"}}, {State: Firing, Notified: []string{"other"}}, {State: Pending, Notified: []string{"am"}},
	} {
		a.Rule, a.Labels = "r"+strconv.Itoa(i), map[string]string{"alertname": "r" + strconv.Itoa(i)}
		present[a.key()] = a
	}
	s := &sender{termWork: &termWork{engine: &Engine{present: present}}, notifier: set["am"], log: slog.New(slog.DiscardHandler)}
	s.refresh(t.Context())
	if body := <-requests; !strings.Contains(body, `"alertname":"r0"`) || strings.Contains(body, "r1") || strings.Contains(body, "r2") {
		t.Error(body)
	}
}
