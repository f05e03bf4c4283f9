package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A file with a secret is treated like a file that is only a secret; a file without one,
// as a ConfigMap has it, may be open.
func TestFileWithSecretMustNotBeOpenToOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing of who may read a file on Windows")
	}
	const notifier = "[alerts.notifications.hook]\ntype = \"webhook\"\nurl = \"https://example.com/T000/x\"\n"
	for _, test := range []struct {
		text, named string // the key with the secret; "" if there is none
	}{
		{"[database]\ndsn = \"postgres://app:hunter2@db/app\"\n", "database.dsn"},
		{"[database]\ndsn = \"host=db user=app password=hunter2\"\n", "database.dsn"},
		{"[database]\ndsn = \"mysql://app:hunter2@db/app\"\n", "database.dsn"},
		{"[database]\ndsn = \"postgres://app@db/app?sslpassword=hunter2\"\n", "database.dsn"},
		{"[database]\ndsn = \"postgres://app:${PW:-hunter2}@db/app\"\n", "database.dsn"},
		{notifier + "secret = \"whsec_c2VjcmV0NXNlY3JldDVzZWNyZXQ1c2VjcmV0NQ==\"\n", "alerts.notifications.hook.secret"},
		{"[database]\ndsn = \"postgres://app:${PW}@db/app\"\n", ""},
		{"[database]\ndsn = \"${DSN}\"\n", ""},
		{"[database]\ndsn = \"host=db password=${PW}\"\n", ""},
		{"[database]\ndsn = \"postgres://app@db/app\"\n", ""},
		{"[database]\ndsn = \"sqlite:a.db\"\n", ""},
		{"[database]\ndsn = \"postgres://app@db/app\"\npassword_command = \"cat /run/secret\"\n", ""},
		{notifier, ""},
		{notifier + "secret = \"${SECRET}\"\n", ""},
	} {
		path := filepath.Join(t.TempDir(), "tenure.toml")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		env := func(name string) (string, bool) {
			if name == "DSN" {
				return "postgres://app:hunter2@db/app", true
			}
			return "whsec_c2VjcmV0NXNlY3JldDVzZWNyZXQ1c2VjcmV0NQ==", true
		}
		for mode, open := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o400: false, 0o644: true, 0o444: true, 0o660: true, 0o604: true} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, env)
			switch {
			case !open || test.named == "":
				if err != nil {
					t.Errorf("mode %04o of %q: %v, want no error", mode, test.text, err)
				}
			case err == nil || !strings.Contains(err.Error(), test.named+" holds a secret") || !strings.Contains(err.Error(), "chmod 0") || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "c2Vj"):
				t.Errorf("mode %04o of %q: %v, want an error that names %s", mode, test.text, err, test.named)
			}
		}
	}
}

// A password that is not escaped, or in the wrong place, is in no error.
func TestErrorsOfNotifiersRepeatNoPassword(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"url = 'https://u:p@QXZJ/QZXJ@h/x'":  "escape the password",
		"url = 'https://u:QXZJ@h?y=QZXJ@h2'": "escape the password",
		"url = 'https://u:QXZJ?QZXJ@h/x'":    "must be a URL",
		"smtp = 'u:QXZJ@h:25'":               "without a user",
		"smtp = 'smtp://u:QXZJ@h:25'":        "without a user",
	} {
		_, err := Parse("tenure.toml", []byte("[alerts.notifications.n]\ntype = 'webhook'\n"+setting+"\n"), none)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "QXZJ") || strings.Contains(err.Error(), "QZXJ") {
			t.Errorf("%s: %v, want an error with %q and no part of the password", setting, err, want)
		}
	}
}
