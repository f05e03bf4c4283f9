package dialects

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/store"
)

// childElects is a child that elects in a SQLite file.
const childElects = "elects"

const (
	childRounds     = 100
	childCandidates = 10
)

// electResult is the result of Elect as a line of a child's output.
type electResult struct {
	Round     int
	Candidate uuid.UUID
	Leader    uuid.UUID
	Term      int64
}

// electChild elects with several concurrent candidates in one namespace after another.
func electChild() error {
	db, err := sql.Open("sqlite", os.Getenv(orderVariable))
	if err != nil {
		return err
	}
	defer db.Close()
	elections, err := store.New(db, lease.SQLite, store.Config{Window: time.Hour})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	output := json.NewEncoder(os.Stdout)
	var first error
	for round := range childRounds {
		var running sync.WaitGroup
		for range childCandidates {
			running.Go(func() {
				id := uuid.New()
				held, err := elections.Elect(ctx, fmt.Sprintf("round-%d", round), id)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					err = output.Encode(electResult{round, id, held.Holder, held.Term})
				}
				if first == nil {
					first = err
				}
			})
		}
		running.Wait()
	}
	return first
}
