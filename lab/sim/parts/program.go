package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// program is the test program of the simulator.
type program struct {
	folder string // for files
	path   string
	hash   string // of its content, the same wherever it was built
}

// build builds the test program.
func build(ctx context.Context, folder string) (*program, error) {
	p := &program{folder: folder, path: filepath.Join(folder, "sim.test")}
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-o", p.path, "./lab/sim")
	compile.Stdout, compile.Stderr = os.Stdout, os.Stderr
	compile.Env = append(os.Environ(), "GOTMPDIR="+folder)
	if err := compile.Run(); err != nil {
		return nil, fmt.Errorf("build the simulator: %w", err)
	}
	content, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	p.hash = hex.EncodeToString(sum[:])
	return p, nil
}

// run runs the next part, shared among processes of one processor each: goroutines
// that wake one another on different processors take longer.
func (p *program) run(ctx context.Context, s *state, size, processes uint64) error {
	began := time.Now()
	results := make([]result, processes)
	spent := make([]time.Duration, processes)
	failures := make([]error, processes)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	first := s.FirstSeed + s.Schedules
	for i := range processes {
		from, to := first+size*i/processes, first+size*(i+1)/processes
		group.Go(func() {
			results[i], spent[i], failures[i] = p.runShare(ctx, from, to)
			if failures[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for i, r := range results {
		s.add(r)
		s.Processor += spent[i]
	}
	s.Elapsed += time.Since(began)
	s.Updated = time.Now().UTC()
	return nil
}

// runShare runs the seeds from from to to, without to, in one process.
func (p *program) runShare(ctx context.Context, from, to uint64) (r result, spent time.Duration, err error) {
	if from == to {
		return result{}, 0, nil
	}
	file := filepath.Join(p.folder, fmt.Sprintf("%d.json", from))
	test := exec.CommandContext(ctx, p.path, "-test.run=^TestSchedules$", "-test.timeout=0",
		fmt.Sprintf("-first-seed=%d", from), fmt.Sprintf("-schedules=%d", to-from), "-result="+file)
	test.Env = append(os.Environ(), "GOMAXPROCS=1")
	output, failure := test.CombinedOutput()
	if ctx.Err() != nil {
		return r, 0, context.Cause(ctx)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return r, 0, fmt.Errorf("seeds %d to %d: %w\n%s", from, to-1, failure, output)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, 0, err
	}
	if r.Schedules != to-from || failure != nil && len(r.Violations) == 0 {
		return r, 0, fmt.Errorf("seeds %d to %d: %d schedules ended: %w\n%s", from, to-1, r.Schedules, failure, output)
	}
	return r, test.ProcessState.UserTime() + test.ProcessState.SystemTime(), os.Remove(file)
}
