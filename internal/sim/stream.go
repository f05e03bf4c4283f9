package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// stream is the random numbers of one actor. Each actor has its own, so that
// what one draws does not depend on the order in which goroutines run. It is
// not safe for concurrent use.
type stream struct{ rnd *rand.Rand }

func newStream(seed uint64, actor string) *stream {
	hash := fnv.New64a()
	hash.Write([]byte(actor))
	return &stream{rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// fork returns a stream of its own for an actor that s's actor starts.
func (s *stream) fork() *stream {
	return &stream{rand.New(rand.NewPCG(s.rnd.Uint64(), s.rnd.Uint64()))}
}

// between returns a duration in [least, most), or least if that is empty.
func (s *stream) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(s.rnd.Int64N(int64(most-least)))
}

// rarely returns a duration with an exponential distribution around mean, at
// most ten times as long.
func (s *stream) rarely(mean time.Duration) time.Duration {
	return time.Duration(min(s.rnd.ExpFloat64(), 10) * float64(mean))
}

func (s *stream) chance(p float64) bool { return s.rnd.Float64() < p }

func (s *stream) below(n int) int { return s.rnd.IntN(n) }

// pick returns one of the choices.
func pick[T any](s *stream, choices ...T) T { return choices[s.below(len(choices))] }
