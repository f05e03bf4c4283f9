package sqldb

import (
	"os"
	"strings"
	"testing"
)

// Kernels before 5.8 leave only the list of mounts.
func TestMountIsFoundInList(t *testing.T) {
	const list = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
41 22 8:1 /srv/leases.db /data/with\040a\134space.db rw,relatime - ext4 /dev/sda1 rw
`
	for path, want := range map[string]bool{
		`/data/with a\space.db`: true,
		"/":                     true,
		"/srv/leases.db":        false,
		"/data":                 false,
	} {
		if got, err := listsMount(strings.NewReader(list), path); got != want || err != nil {
			t.Errorf("%s is a mount: %v, %v; want %v", path, got, err, want)
		}
	}
}

// Both ways to find a mount agree about this machine.
func TestMountsOfThisMachineAreFound(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/proc": true, self: false} {
		if got, err := isMounted(path); got != want || err != nil {
			t.Errorf("%s is a mount: %v, %v; want %v", path, got, err, want)
		}
		mounts, err := os.Open("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := listsMount(mounts, path); got != want || err != nil {
			t.Errorf("%s is listed: %v, %v; want %v", path, got, err, want)
		}
		mounts.Close()
	}
}
