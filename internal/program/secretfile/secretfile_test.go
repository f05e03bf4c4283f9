package secretfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestModesOpenToOthersAreRefused: a secret that others can read, or replace, is refused with the command
// that closes it.
func TestModesOpenToOthersAreRefused(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, advice := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o640: "", 0o440: "", 0o700: "",
		0o644: "chmod 0640 ", 0o604: "chmod 0600 ", 0o602: "chmod 0600 ", 0o601: "chmod 0600 ", 0o660: "chmod 0640 ", 0o666: "chmod 0640 ", 0o444: "chmod 0440 ",
	} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		content, err := Read(name, 4)
		switch {
		case advice == "" && (err != nil || string(content) != "text"):
			t.Errorf("%04o: %q, %v", mode, content, err)
		case advice != "" && (err == nil || content != nil || !strings.Contains(err.Error(), advice+name)):
			t.Errorf("%04o: %q, %v; want %q", mode, content, err, advice)
		}
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(name, 3); err == nil {
		t.Error("a file that is too large was read")
	}
	if _, err := Read(filepath.Dir(name), 10); err == nil {
		t.Error("a directory was read")
	}
	link := name + ".link" // as the files of a Kubernetes secret
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(link, 10); err == nil {
		t.Error("a link to a file that others can read was followed")
	}
}
