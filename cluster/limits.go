package cluster

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// limits are the limits of Linux control groups on this process. Zero means no limit.
type limits struct {
	cpus   float64
	memory float64 // bytes
}

// readLimits reads the limits of the process's control groups below the root of
// a file system. The lowest limit of a group and its parents applies. A missing
// file, as on other systems, means no limit.
func readLimits(root fs.FS) limits {
	memberships, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limits{}
	}
	least := limits{cpus: math.Inf(1), memory: math.Inf(1)}
	for lines := bufio.NewScanner(bytes.NewReader(memberships)); lines.Scan(); {
		// A line is "hierarchy:controllers:path"; version 2 names no controllers.
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 {
			continue
		}
		controllers, group := fields[1], fields[2]
		mount := path.Join("sys/fs/cgroup", controllers)
		// In a container, the path can be the host's. Then only the mount itself exists
		// here: the walk ends there.
		for ; ; group = path.Dir(group) {
			directory := path.Join(mount, group)
			if controllers == "" {
				least.cpus = min(least.cpus, cpusOfVersion2(root, directory))
				least.memory = min(least.memory, number(root, directory, "memory.max"))
			} else {
				least.cpus = min(least.cpus, cpusOfVersion1(root, directory))
				least.memory = min(least.memory, number(root, directory, "memory.limit_in_bytes"))
			}
			if group == "/" || group == "." {
				break
			}
		}
	}
	return limits{cpus: finite(least.cpus), memory: finite(least.memory)}
}

// cpusOfVersion2 reads "quota period", where the quota may be "max".
func cpusOfVersion2(root fs.FS, directory string) float64 {
	text, _ := fs.ReadFile(root, path.Join(directory, "cpu.max")) // a missing file means no limit
	fields := strings.Fields(string(text))
	if len(fields) != 2 {
		return math.Inf(1)
	}
	return ratio(limit(fields[0]), limit(fields[1]))
}

func cpusOfVersion1(root fs.FS, directory string) float64 {
	return ratio(number(root, directory, "cpu.cfs_quota_us"), number(root, directory, "cpu.cfs_period_us"))
}

// number reads the limit in a file.
func number(root fs.FS, directory, file string) float64 {
	text, _ := fs.ReadFile(root, path.Join(directory, file)) // a missing file means no limit
	return limit(strings.TrimSpace(string(text)))
}

// limit parses a limit. Version 1 writes -1 for no limit, and version 2 "max".
func limit(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		return math.Inf(1)
	}
	return value
}

func ratio(quota, period float64) float64 {
	if math.IsInf(period, 1) {
		return math.Inf(1)
	}
	return quota / period
}

// finite returns 0 for an infinite limit.
func finite(limit float64) float64 {
	if math.IsInf(limit, 1) {
		return 0
	}
	return limit
}
