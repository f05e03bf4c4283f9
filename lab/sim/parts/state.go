package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// state is what the parts so far have found. It is kept in a file, which is
// replaced after each part.
type state struct {
	Tree       string        `json:"tree"`     // hash of the test program of the last part
	Versions   uint64        `json:"versions"` // of the test program, of all parts
	FirstSeed  uint64        `json:"first_seed"`
	Schedules  uint64        `json:"schedules"` // so far; the seeds follow one another
	Terms      int64         `json:"terms"`
	Violations []violation   `json:"violations"`
	Elapsed    time.Duration `json:"elapsed_ns"`
	Processor  time.Duration `json:"processor_ns"` // time of all processors
	Updated    time.Time     `json:"updated"`
}

// violation is a schedule that broke an invariant.
type violation struct {
	Seed uint64 `json:"seed"`
	What string `json:"what"`
}

// result is what TestSchedules writes for -result.
type result struct {
	Schedules  uint64      `json:"schedules"`
	Terms      int64       `json:"terms"`
	Violations []violation `json:"violations"`
}

// add adds a part.
func (s *state) add(r result) {
	s.Schedules += r.Schedules
	s.Terms += r.Terms
	s.Violations = append(s.Violations, r.Violations...)
}

// errOtherTree is the error of a state that another test program has written.
var errOtherTree = errors.New("other code")

// load reads the state of a run that is to be continued. If there is none, the state
// is new; so it is, with errOtherTree, after a change of the code, unless keep.
func load(path, tree string, firstSeed uint64, keep bool) (state, error) {
	fresh := state{Tree: tree, Versions: 1, FirstSeed: firstSeed}
	if path == "" {
		return fresh, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return state{}, fmt.Errorf("%s: %w", path, err)
	}
	if s.FirstSeed != firstSeed {
		return state{}, fmt.Errorf("%s is of a run from seed %d: use another file", path, s.FirstSeed)
	}
	if s.Tree != tree && !keep {
		return fresh, errOtherTree
	}
	if s.Tree != tree {
		s.Tree = tree
		s.Versions++
	}
	return s, nil
}

// save replaces the file of the state, which is never seen half written.
func (s state) save(path string) error {
	if path == "" {
		return nil
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.WriteFile(next, append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
