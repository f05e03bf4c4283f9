package cluster

import (
	"testing"
	"testing/fstest"
)

func files(contents map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, content := range contents {
		root[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return root
}

func TestLimitsAreReadFromControlGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  limits
	}{
		"no control groups": {nil, limits{}},
		"version 2": {map[string]string{
			"proc/self/cgroup":                  "0::/app\n",
			"sys/fs/cgroup/app/cpu.max":         "150000 100000\n",
			"sys/fs/cgroup/app/memory.max":      "268435456\n",
			"sys/fs/cgroup/memory.limit_in_use": "1",
		}, limits{1.5, 256 << 20}},
		"version 2, limited further out": {map[string]string{
			"proc/self/cgroup":                     "0::/slice/app\n",
			"sys/fs/cgroup/slice/app/cpu.max":      "max 100000\n",
			"sys/fs/cgroup/slice/cpu.max":          "50000 100000\n",
			"sys/fs/cgroup/slice/app/memory.max":   "1000000\n",
			"sys/fs/cgroup/slice/memory.max":       "2000000\n",
			"sys/fs/cgroup/another/app/memory.max": "3\n",
		}, limits{0.5, 1e6}},
		"version 2, with the host's path in a container": {map[string]string{
			"proc/self/cgroup":         "0::/kubepods/pod1/abc\n",
			"sys/fs/cgroup/cpu.max":    "200000 100000\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, limits{2, 0}},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n1:name=systemd:/docker/1\n0::/\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us":  "25000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes":  "104857600\n",
		}, limits{0.25, 100 << 20}},
		"version 1 without limits": {map[string]string{
			"proc/self/cgroup":                       "4:cpu:/\n5:memory:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":     "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":    "100000\n",
			"sys/fs/cgroup/memory/other_file_of_its": "1",
		}, limits{}},
		"nonsense": {map[string]string{
			"proc/self/cgroup":             "what\n0::/app\n::\n",
			"sys/fs/cgroup/app/cpu.max":    "fast\n",
			"sys/fs/cgroup/app/memory.max": "",
		}, limits{}},
	} {
		if got := readLimits(files(c.files)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
