package dialects

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func manyNamespaces(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("namespace-%05d", i)
	}
	return names
}

func TestStoreElectAllDecidesEachNamespace(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			elections := newStore(t, k, k.open(t), time.Hour)
			a, b := uuid.New(), uuid.New()
			names := manyNamespaces(1000)
			for _, name := range []string{names[3], names[700], ""} {
				if _, err := elections.Elect(t.Context(), name, b); err != nil {
					t.Fatal(err)
				}
			}
			ctx := limited(t, 4*patience) // the store's own bound is 10 s, which is short for so many
			asked := slices.Concat([]string{"default", names[5], ""}, names)
			slices.Reverse(asked[3:])
			for range 2 { // taking, and renewing
				leases, err := elections.ElectAll(ctx, a, asked)
				if err != nil || len(leases) != len(asked) {
					t.Fatalf("%d leases, %v", len(leases), err)
				}
				for i, held := range leases {
					want := a
					if slices.Contains([]string{names[3], names[700], "", "default"}, asked[i]) {
						want = b
					}
					if held.Holder != want || held.Term < 1 || held.ValidFor <= 0 {
						t.Errorf("%q: got %+v, want %s to lead", asked[i], held, want)
					}
				}
			}
			if leases, err := elections.ElectAll(t.Context(), a, nil); err != nil || len(leases) != 0 {
				t.Errorf("no namespaces: %v, %v", leases, err)
			}
		})
	}
}

// Concurrent calls for the same namespaces succeed, whatever their order of the namespaces.
func TestStoreConcurrentElectAllSucceeds(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			elections := newStore(t, k, k.open(t), 700*time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
			defer cancel()
			var mu sync.Mutex
			leaders := map[string]uuid.UUID{}
			var running sync.WaitGroup
			for i := range 4 {
				running.Go(func() {
					id, names := uuid.New(), manyNamespaces(500)
					if i%2 == 1 {
						slices.Reverse(names)
					}
					for range 4 {
						leases, err := elections.ElectAll(ctx, id, names)
						if err != nil {
							t.Errorf("ElectAll: %v", err)
							return
						}
						mu.Lock()
						for j, held := range leases {
							key := fmt.Sprint(names[j], held.Term)
							if before, known := leaders[key]; known && before != held.Holder {
								t.Errorf("%s: term %d is led by %s and by %s", names[j], held.Term, before, held.Holder)
							}
							leaders[key] = held.Holder
						}
						mu.Unlock()
					}
				})
			}
			running.Wait()
		})
	}
}
