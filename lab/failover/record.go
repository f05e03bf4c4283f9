package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// recordFormat is the version of the format. A change that renames or removes a field
// increases it. README.md documents the fields.
const recordFormat = 2

// record is the content of the file that -json writes.
type record struct {
	Format int           `json:"format"`
	Run    parameters    `json:"run"`
	Faults []faultRecord `json:"faults"`
	Costs  []costRecord  `json:"costs,omitempty"`
}

// costRecord is what nodes needed while nothing happened.
type costRecord struct {
	Cost        string           `json:"cost"`
	Nodes       int              `json:"nodes"`
	Roles       int              `json:"roles"`
	NotMeasured string           `json:"not_measured,omitempty"` // why
	Seconds     float64          `json:"seconds,omitempty"`      // in which statements were counted
	Statements  *float64         `json:"statements_per_s_and_node,omitempty"`
	Sent        []statementCount `json:"sent,omitempty"` // by all nodes
	Resident    *float64         `json:"resident_mb,omitempty"`
}

// statementCount is how often a statement was sent, by its name.
type statementCount struct {
	Statement string `json:"statement"`
	Count     int    `json:"count"`
}

// parameters are what the figures depend on.
type parameters struct {
	Started    time.Time `json:"started"`
	Rounds     int       `json:"rounds"`
	SlowRounds int       `json:"slow_rounds"`
	Nodes      int       `json:"nodes"`
	Roles      int       `json:"roles"`
	Lease      float64   `json:"lease_ms"`
	Slow       float64   `json:"slow_ms"`
	PostgreSQL string    `json:"postgresql"`
	Go         string    `json:"go"`
	OS         string    `json:"os"`
	Arch       string    `json:"arch"`
	CPUs       int       `json:"cpus"`
	Commit     string    `json:"commit,omitempty"`
	Modified   bool      `json:"modified,omitempty"` // the commit had changes that were not committed
}

// faultRecord is one scenario.
type faultRecord struct {
	Fault       string         `json:"fault"`
	Bound       string         `json:"bound,omitempty"`
	NotMeasured string         `json:"not_measured,omitempty"` // why
	SlowAbove   float64        `json:"slow_above_ms,omitempty"`
	Summary     *summary       `json:"summary,omitempty"`
	Histogram   []bucket       `json:"histogram,omitempty"`
	Causes      map[string]int `json:"causes,omitempty"` // of the slow rounds
	Rounds      []roundRecord  `json:"rounds,omitempty"`
}

// summary has the figures of the printed table.
type summary struct {
	Rounds       int      `json:"rounds"`
	P50          float64  `json:"p50_ms"`
	P99          float64  `json:"p99_ms"`
	Max          float64  `json:"max_ms"`
	BareP50      *float64 `json:"bare_p50_ms,omitempty"`
	Ratio        *float64 `json:"ratio,omitempty"` // of the medians
	BeginP50     *float64 `json:"bare_begin_p50_ms,omitempty"`
	BeginRatio   *float64 `json:"begin_ratio,omitempty"`
	BothTrusting float64  `json:"both_trusting_ms"`
}

// roundRecord is one round. The cause is set in slow rounds only.
type roundRecord struct {
	Round     int       `json:"round"`
	Started   time.Time `json:"started"`
	Took      float64   `json:"took_ms"`
	Bare      *float64  `json:"bare_ms,omitempty"`
	BareBegin *float64  `json:"bare_begin_ms,omitempty"`
	Note      string    `json:"note,omitempty"`
	Cause     string    `json:"cause,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	Facts     facts     `json:"facts"`
}

// parameters returns the parameters of a run that begins now.
func (b *bench) parameters() parameters {
	p := parameters{
		Started: time.Now().UTC().Truncate(time.Second), Rounds: b.rounds, SlowRounds: b.slowRounds, Nodes: nodes, Roles: b.roles,
		Lease: inMilliseconds(b.lease), Slow: inMilliseconds(b.slow), PostgreSQL: b.server.Installation.Version,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range build.Settings {
			switch setting.Key {
			case "vcs.revision":
				p.Commit = setting.Value
			case "vcs.modified":
				p.Modified = setting.Value == "true"
			}
		}
	}
	return p
}

func (r record) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}

// readRecord reads a file that -json wrote.
func readRecord(path string) (record, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return record{}, fmt.Errorf("%s was not written by -json: %w", path, err)
	}
	if r.Format != recordFormat {
		return record{}, fmt.Errorf("%s has the format %d: write it again with this version, which reads %d", path, r.Format, recordFormat)
	}
	return r, nil
}
