package service

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// ReturnMemory returns the memory of the start to the system: heap, and pages of the
// program's own file, mostly never used again. Pages needed again are read from the file.
func ReturnMemory() {
	debug.FreeOSMemory()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	mappings, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer mappings.Close()
	var start, end uintptr
	for lines := bufio.NewScanner(mappings); lines.Scan(); {
		line := lines.Text()
		var from, to uintptr
		var rights string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); n == 3 {
			start, end = 0, 0
			if strings.HasSuffix(line, " "+program) && !strings.Contains(rights, "w") {
				start, end = from, to
			}
			continue
		}
		// Pages written by the dynamic linker are not in the file.
		if figure, ok := strings.CutPrefix(line, "Anonymous:"); ok && start < end && strings.TrimSpace(figure) == "0 kB" {
			// The addresses from the kernel's list are not Go's memory. If the
			// call fails, the pages stay.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED)
		}
	}
}
