package script

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Plan is what a script is made from.
type Plan struct {
	Seed         uint64
	Duration     time.Duration
	Lease        time.Duration
	Nodes, Roles int
	Kinds        []Kind // at least one
	// Relayed reports whether a node reaches the server through a relay.
	Relayed func(node int) bool
}

// The pauses of a script, in leases: from the beginning of one fault to the next,
// and after a fault of the whole server, which the nodes need to come back.
const (
	shortestPause = 0.25
	longestPause  = 1.5
	quiet         = 2
	soonest       = 0.02 // from the fault of a node to that of the server
	latest        = 0.3
)

// Generate makes a script from a seed: the same plan always gives the same script.
// Every kind comes once before a kind comes again. Faults of nodes overlap, but at
// least half of the nodes have none at any time. Every second fault of the whole
// server waits until no node has a fault, and is over before the next one begins; the
// others begin right after a node was stopped or cut off, so that it may still trust
// its terms when the server has forgotten them.
func Generate(p Plan) []Step {
	g := &generator{Plan: p, random: rand.New(rand.NewPCG(p.Seed, 0)), busy: make([]time.Duration, p.Nodes)} //nolint:gosec // the script must repeat
	last := p.Duration - g.leases(2*quiet)                                                                   // the last fault ends before the run does
	for g.at = g.leases(1); End(g.steps) <= last; {
		g.add(g.next())
	}
	return slices.DeleteFunc(g.steps, func(s Step) bool { return s.At+s.For > last })
}

// generator makes a script step by step.
type generator struct {
	Plan
	random *rand.Rand
	steps  []Step
	order  []int           // of the kinds that are to come
	at     time.Duration   // when the next step can begin
	alone  time.Duration   // until when the last fault of the whole server lasts
	busy   []time.Duration // until when each node has a fault or comes back from one
}

func (g *generator) leases(n float64) time.Duration { return time.Duration(n * float64(g.Lease)) }

func (g *generator) next() Kind {
	if len(g.order) == 0 {
		g.order = g.random.Perm(len(g.Kinds))
	}
	k := g.Kinds[g.order[0]]
	g.order = g.order[1:]
	return k
}

func (g *generator) add(k Kind) {
	switch {
	case !k.Alone:
		s := g.step(k)
		g.at = s.At + g.pause()
	case g.random.IntN(2) == 0:
		g.at = max(g.at, g.alone, slices.Max(g.busy))
		g.addAlone(k)
		g.at = g.alone
	default:
		g.at = max(g.at, g.alone)
		if isolating := g.isolatingKinds(); len(isolating) > 0 {
			s := g.step(isolating[g.random.IntN(len(isolating))])
			g.at = s.At + between(g.random, g.leases(soonest), g.leases(latest))
		}
		g.addAlone(k)
		g.at += g.pause()
	}
}

func (g *generator) addAlone(k Kind) {
	s := g.step(k)
	g.alone = s.At + s.For + g.leases(quiet)
}

func (g *generator) pause() time.Duration {
	return between(g.random, g.leases(shortestPause), g.leases(longestPause))
}

// isolatingKinds lists the kinds that keep the server's messages from a node.
func (g *generator) isolatingKinds() []Kind {
	return slices.DeleteFunc(slices.Clone(g.Kinds), func(k Kind) bool {
		return !k.OnNode || !k.Long || k.Needs != 0 || k.Layer == "administrator"
	})
}

// step adds one step.
func (g *generator) step(k Kind) Step {
	s := Step{At: g.at, Kind: k.Name, For: g.lasts(g.random, k), By: between(g.random, k.By[0], k.By[1])}
	if k.OnRole {
		s.Role = 1 + g.random.IntN(g.Roles)
	}
	if k.OnNode {
		s.Node, s.At = g.pick(g.random, k, g.busy, g.at)
		g.busy[s.Node-1] = s.At + s.For + g.leases(1)
	}
	s.At = s.At.Round(10 * time.Millisecond)
	g.steps = append(g.steps, s)
	return s
}

// pick chooses a node without a fault, and when: while half of the nodes have one,
// it waits for the first of them.
func (p Plan) pick(random *rand.Rand, k Kind, busy []time.Duration, at time.Duration) (node int, when time.Duration) {
	for {
		var free []int
		occupied, next := 0, time.Duration(-1)
		for i, until := range busy {
			switch {
			case until > at:
				occupied++
				if next < 0 || until < next {
					next = until
				}
			case k.Needs&Relay == 0 || p.Relayed(i+1):
				free = append(free, i+1)
			}
		}
		if len(free) > 0 && (occupied == 0 || occupied < p.Nodes/2) {
			return free[random.IntN(len(free))], at
		}
		at = next
	}
}

func (p Plan) lasts(random *rand.Rand, k Kind) time.Duration {
	lease := float64(p.Lease)
	switch {
	case k.Instant:
		return 0
	case k.Long:
		return between(random, time.Duration(1.1*lease), time.Duration(2.5*lease))
	default:
		return between(random, time.Duration(0.05*lease), time.Duration(0.5*lease))
	}
}

func between(random *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return (low + time.Duration(random.Int64N(int64(high-low)))).Round(10 * time.Millisecond)
}
