package alerts

import (
	"context"
	"errors"
	"runtime/metrics"
	"sync"
	"time"
)

// maxMemory is by how much the heap may grow while one query is evaluated, in bytes.
// The bounds on samples keep ordinary rules far below it.
const (
	maxMemory   = 384 << 20
	memoryLooks = 5 * time.Millisecond
)

var errMemory = errors.New("it takes more than 384 MB of memory: ask for fewer series, a shorter range or a longer step")

// watchMemory returns a context. It ends with errMemory when the heap has grown too much.
// Call stop after the evaluation of the query.
func watchMemory(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	begun := heap()
	var watching sync.WaitGroup
	watching.Go(func() { // ends with the context; stop waits for it
		look := time.NewTicker(memoryLooks)
		defer look.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-look.C:
			}
			if now := heap(); now > begun && now-begun > maxMemory {
				cancel(errMemory)
				return
			}
		}
	})
	return watched, func() {
		cancel(nil)
		watching.Wait()
	}
}

// heap is the size of the heap in use, including garbage.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
