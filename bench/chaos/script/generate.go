package script

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Plan says what script to make.
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
)

// Generate makes a script from a seed: the same plan always gives the same script.
// Every kind comes once before a kind comes again. Faults of nodes overlap, but at
// least half of the nodes have none at any time. Every second fault of the whole
// server waits until no node has a fault, and is over before the next one begins; the
// others meet nodes with faults.
func Generate(p Plan) []Step {
	random := rand.New(rand.NewPCG(p.Seed, 0)) //nolint:gosec // the script must repeat
	lease := func(n float64) time.Duration { return time.Duration(n * float64(p.Lease)) }
	busy := make([]time.Duration, p.Nodes) // until when each node has a fault or comes back from one
	var steps []Step
	var order []int
	last := p.Duration - lease(2*quiet) // the last fault ends before the run does
	var alone time.Duration             // until when the last fault of the whole server lasts
	for at := lease(1); at < last; {
		if len(order) == 0 {
			order = random.Perm(len(p.Kinds))
		}
		k := p.Kinds[order[0]]
		order = order[1:]
		s := Step{At: at, Kind: k.Name, For: p.lasts(random, k), By: between(random, k.By[0], k.By[1])}
		if k.OnRole {
			s.Role = 1 + random.IntN(p.Roles)
		}
		apart := k.Alone && random.IntN(2) == 0
		if k.Alone {
			s.At = max(s.At, alone)
		}
		if apart {
			s.At = max(s.At, slices.Max(busy))
		}
		if k.OnNode {
			s.Node, s.At = p.pick(random, k, busy, at)
			busy[s.Node-1] = s.At + s.For + lease(1)
		}
		if s.At+s.For > last {
			break
		}
		s.At = s.At.Round(10 * time.Millisecond)
		steps = append(steps, s)
		at = s.At + between(random, lease(shortestPause), lease(longestPause))
		if k.Alone {
			alone = s.At + s.For + lease(quiet)
		}
		if apart {
			at = alone
		}
	}
	return steps
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
