package cli

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
	"github.com/exactly-one/tenure/internal/testkit"
)

// SIGHUP applies a change of a notifier without a change of any alert, and
// sends immediately what waited for it. A list is applied once, however much of
// it has changed.
func TestReloadAppliesNotifier(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := place{pgtest.Start(t, pgtest.Options{}), "public"}
	told := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/wrong" {
			w.WriteHeader(http.StatusNotFound)
		} else {
			told <- r.URL.Path + " " + string(body)
		}
	}))
	defer receiver.Close()
	path := filepath.Join(t.TempDir(), "tenure.toml")
	write := func(hook, more string) {
		t.Helper()
		text := "[[alerts]]\nname = 'always'\ncondition = 'vector(1)'\nnotify = ['hook']\n" + more +
			"[alerts.notifications.hook]\ntype = 'webhook'\nurl = '" + receiver.URL + hook + "'\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("/wrong", "")
	node := launch(t, place.with("serve", "--config", path, "--listen", ":0", "--log-level", "info", "--alert-interval", "100ms")...)
	node.awaitLog("answered 404")
	conn := place.server.Conn(t)
	pgtest.Exec(t, conn, `UPDATE tenure_alert_notifications SET next_attempt_at = clock_timestamp() + interval '10 minutes'`)
	write("/mended", "")
	node.signal(syscall.SIGHUP)
	if got := testkit.Receive(t, told, patience, "no notification was sent"); !strings.HasPrefix(got, "/mended ") || !strings.Contains(got, "always") {
		t.Errorf("the notification was %s", got)
	}
	node.awaitLog(`msg="a change was applied" change="alerts.notifications.hook.url changes"`)
	if strings.Contains(node.log(), "takes effect when") || strings.Contains(node.log(), "/wrong") {
		t.Errorf("%s", node.log())
	}
	write("/again", "[[alerts]]\nname = 'second'\ncondition = 'vector(1)'\nnotify = ['hook']\n")
	node.signal(syscall.SIGHUP)
	node.awaitLog(`changes=2`)
	if got := <-told; !strings.HasPrefix(got, "/again ") || !strings.Contains(got, "second") {
		t.Errorf("the notification was %s", got)
	}
}

// TestReloadAddsFirstUser: a program that began without users takes the passwords of those
// that a reload adds, and none of those that it removes. Until then its page has no login.
func TestReloadAddsFirstUser(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := place{pgtest.Start(t, pgtest.Options{}), "public"}
	const password = "correct horse battery"
	path := filepath.Join(t.TempDir(), "tenure.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	node := launch(t, place.with("serve", "--config", path, "--listen", ":0", "--log-level", "info")...)
	base := served(node)
	eventually(t, "the page", func() bool {
		status, _ := fetch(t, http.MethodGet, base+"/readyz", "")
		return status == http.StatusOK
	})
	credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte("anna:"+password))
	check := func(when, want string) {
		t.Helper()
		if _, answer := fetch(t, http.MethodGet, base+"/api/session", "", "Authorization", credentials); !strings.Contains(answer, want) {
			t.Errorf("%s, the session is %s", when, answer)
		}
	}
	check("without users", `"log_in":""`)
	write("[[dashboard.users]]\nname = 'anna'\naccess = 'operator'\npassword_hash = '" + passwordhash.New(password) + "'\n")
	node.signal(syscall.SIGHUP)
	node.awaitLog(`a change was applied`)
	check("with a user", `"user":"anna","access":"operator"`)
	write("")
	node.signal(syscall.SIGHUP)
	node.awaitLog(`is removed`)
	check("without the user", `"user":""`)
}
