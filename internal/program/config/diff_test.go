package config

import (
	"slices"
	"strings"
	"testing"
)

func TestDiffListsChangedKeys(t *testing.T) {
	t.Parallel()
	before := mustParse(t, `
[database]
dsn = "postgres://app:secret1@db/app"
[node]
name = "n1"
log_level = "info"
[cluster.leader_election]
lease_duration = "60s"
settle = "1s"
[[alerts]]
name = "gone"
condition = "up"
[[alerts]]
name = "same"
condition = "up"
labels = { a = "1", b = "2" }
[[alerts]]
name = "other"
condition = "up"
[alerts.notifications.slack]
url = "https://hooks.example/secret2"
`, none)
	after := mustParse(t, `
node = { name = "n1", log_level = "debug" }
http.token_file = "/run/token"
[cluster.leader_election]
lease_duration = "1m30s"
settle = 1.0
[[alerts]]
name = "same"
labels.a = "1"
labels.b = "2"
condition = "up"
[alerts.notifications.slack]
url = "https://hooks.example/secret3"
[[alerts]]
name = "other"
condition = "down"
[[alerts]]
name = "new"
condition = "up"
[database]
dsn = "postgres://app:secret4@db/app"
`, none)
	var got []string
	for _, change := range Diff(before, after) {
		got = append(got, change.String())
	}
	want := []string{
		`alerts "gone" is removed`,
		`alerts "new" is new`,
		`alerts "other" changes`,
		`alerts.notifications.slack.url changes`,
		`cluster.leader_election.lease_duration changes from "1m" to "1m30s": it takes effect when the program is started again`,
		`database.dsn changes: it takes effect when the program is started again`,
		`http.token_file changes from the default to "/run/token": it takes effect when the program is started again`,
		`node.log_level changes from "info" to "debug"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, change := range Diff(before, after) {
		ofAlerts := strings.HasPrefix(change.Key, "alerts")
		if (change.List == "alerts") != ofAlerts || (change.Evidence == alertEvidence) != ofAlerts {
			t.Errorf("%s is of the list %q and of commands with --%s", change.Key, change.List, change.Evidence)
		}
	}
	if changes := Diff(nil, nil); len(changes) > 0 {
		t.Errorf("nothing differs from nothing: %v", changes)
	}
}
