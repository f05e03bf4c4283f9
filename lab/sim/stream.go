package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// stream is the random numbers of one actor. Each actor has its own, so that
// what one draws does not depend on the order in which goroutines run. It is
// not safe for concurrent use.
type stream struct {
	rnd    *rand.Rand
	steady bool // everything takes the least time, and nothing optional happens
}

func newStream(seed uint64, actor string) *stream {
	hash := fnv.New64a()
	hash.Write([]byte(actor))
	return &stream{rnd: rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// stream returns the stream of an actor in this world.
func (w *World) stream(actor string) *stream {
	s := newStream(w.seed, actor)
	s.steady = w.network.Steady
	return s
}

// fork returns a separate stream for an actor that the actor of s starts.
func (s *stream) fork() *stream {
	return &stream{rand.New(rand.NewPCG(s.rnd.Uint64(), s.rnd.Uint64())), s.steady}
}

// between returns a duration in [least, most), or least if that is empty.
func (s *stream) between(least, most time.Duration) time.Duration {
	if most <= least || s.steady {
		return least
	}
	return least + time.Duration(s.rnd.Int64N(int64(most-least)))
}

// rarely returns a duration with an exponential distribution around mean, at
// most ten times as long.
func (s *stream) rarely(mean time.Duration) time.Duration {
	if s.steady {
		return mean
	}
	return time.Duration(min(s.rnd.ExpFloat64(), 10) * float64(mean))
}

func (s *stream) chance(p float64) bool {
	if s.steady {
		return p >= 1
	}
	return s.rnd.Float64() < p
}

func (s *stream) below(n int) int { return s.rnd.IntN(n) }

// pick returns one of the choices.
func pick[T any](s *stream, choices ...T) T { return choices[s.below(len(choices))] }
