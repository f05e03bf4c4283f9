package dashboard

import (
	"math"
	"time"
)

// graphRange is a range of time for graphs, in steps of one point.
type graphRange struct {
	length, step time.Duration
	daily        bool // from the daily totals, which are of all nodes together
}

// graphRanges are the ranges by their name in the address of a page.
var graphRanges = map[string]graphRange{
	"1h":  {length: time.Hour, step: 10 * time.Second},
	"6h":  {length: 6 * time.Hour, step: time.Minute},
	"24h": {length: sampledFor, step: 5 * time.Minute},
	"7d":  {length: 7 * 24 * time.Hour, step: 24 * time.Hour, daily: true},
	"30d": {length: 30 * 24 * time.Hour, step: 24 * time.Hour, daily: true},
}

// graphsRecord is a page's view of the stored samples in a range.
type graphsRecord struct {
	From    int64         `json:"from"`    // in ms, as all times here
	To      int64         `json:"to"`      // the time of the read
	Newest  *int64        `json:"newest"`  // when the latest sample was written; null if there is none
	Problem string        `json:"problem"` // why there is nothing to show, and what to do
	Graphs  []graphRecord `json:"graphs"`
}

type graphRecord struct {
	Name   string         `json:"name"`
	Unit   string         `json:"unit"` // ratio or count
	Step   int64          `json:"step"` // in ms, of numbers that are counted in steps; 0 for values at a time
	Series []seriesRecord `json:"series"`
}

// seriesRecord is a line of a graph: [at ms, value]. A value is null where samples are
// missing.
type seriesRecord struct {
	Name   string   `json:"name"`
	Points [][2]any `json:"points"`
}

// line is a line of a graph before its points are known.
type line struct {
	name   string
	figure figure
	metric string // of the daily totals
	status string // its label
	how    reduction
}

// reduction is how the daily totals of a metric become one number.
type reduction int

const (
	mean reduction = iota
	greatest
	increase
	present // is not of the samples, but of the terms
)

type graph struct {
	name, unit string
	lines      []line
}

var (
	nodeGraphs = []graph{
		{"load", "ratio", []line{{name: "cpu", figure: nodeCPU}, {name: "memory", figure: nodeMemory}}},
		{"work", "count", []line{{name: "connections", figure: nodeConnections}, {name: "jobs", figure: nodeJobs}, {name: "in_flight", figure: nodeInFlight}}},
	}
	clusterGraphs = []graph{
		{"nodes", "count", []line{
			{name: "active", figure: activeNodes, metric: "_cluster_nodes", status: "active"},
			{name: "draining", figure: drainingNodes, metric: "_cluster_nodes", status: "draining"},
			{name: "dead", figure: deadNodes, metric: "_cluster_nodes", status: "dead"},
		}},
		{"roles", "count", []line{{name: "led", figure: figureCount, how: present}}},
		{"failovers", "count", []line{{name: "failovers", figure: figureCount, metric: "_leader_failovers_total", how: increase}}},
		{"load", "ratio", []line{
			{name: "mean", figure: meanLoad, metric: "_cluster_mean_load"},
			{name: "highest", figure: highestLoad, metric: "_cluster_highest_load", how: greatest},
		}},
		{"work", "count", []line{
			{name: "connections", figure: allConnections, metric: "_cluster_connections"},
			{name: "jobs", figure: allJobs, metric: "_cluster_jobs"},
			{name: "in_flight", figure: allInFlight, metric: "_cluster_in_flight"},
		}},
	}
)

// The remedies if there is nothing to show.
const (
	noSamples     = "No samples are stored. Nodes store samples if they serve --listen, and Go programs with metrics.NewReporter."
	noNodeSamples = "No samples of this node are stored in this range. A node stores samples if it serves --listen, and a Go program with metrics.NewReporter."
	newerSamples  = "The stored samples cannot be read: a newer release wrote them. Update the program that serves this page."
	noDays        = "No daily totals are stored in this range. The leader of the role log-compactor adds samples to them when they are a day old: run tenure serve, or package retention."
	noPrivilege   = "The dashboard's database user may not read the samples. Grant it what tenure migrate grants --work prints."
)

// insufficientPrivilege is PostgreSQL's code for a missing privilege.
const insufficientPrivilege = "42501"

const (
	mostClusterPoints = 180 // of a line of the cluster
	barCount          = 24  // numbers of failovers
)

// point is a value at a time.
func point(at time.Time, value float64) [2]any {
	return [2]any{at.UnixMilli(), math.Round(value*1e4) / 1e4}
}
