package dialects

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// BenchmarkElect renews one lease per call: with one namespace, and with one namespace for
// each of several concurrent callers.
func BenchmarkElect(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name+"/one", func(b *testing.B) {
			elections := newStore(b, k, k.open(b), time.Hour)
			id := uuid.New()
			for b.Loop() {
				if _, err := elections.Elect(b.Context(), "n", id); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
		b.Run(k.name+"/many", func(b *testing.B) {
			elections := newStore(b, k, k.open(b), time.Hour)
			names := manyNamespaces(64)
			var next atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				name, id := names[int(next.Add(1))%len(names)], uuid.New()
				for pb.Next() {
					if _, err := elections.Elect(b.Context(), name, id); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// BenchmarkRenewAll renews leases in ten thousand namespaces with one call and reports the
// median.
func BenchmarkRenewAll(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			elections := newStore(b, k, k.open(b), time.Hour)
			id, names := uuid.New(), manyNamespaces(10000)
			if _, err := elections.ElectAll(b.Context(), id, names); err != nil {
				b.Fatal(err)
			}
			var times []time.Duration
			for b.Loop() {
				begun := time.Now()
				leases, err := elections.ElectAll(b.Context(), id, names)
				if err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(begun))
				if last := leases[len(leases)-1]; last.Holder != id {
					b.Fatalf("got %+v", last)
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(len(names))/times[len(times)/2].Seconds(), "leases/s")
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-median")
		})
	}
}
