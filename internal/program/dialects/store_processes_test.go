package dialects

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// Several processes elect in one SQLite file. Every namespace has one winner, and all calls
// return it.
func TestStoreProcessesAgreeOnOneWinner(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const processes = 4
	source := sqlite(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	commands := make([]*exec.Cmd, processes)
	outputs := make([]bytes.Buffer, processes)
	complaints := make([]bytes.Buffer, processes)
	for i := range commands {
		commands[i] = exec.CommandContext(ctx, program)
		commands[i].Env = append(os.Environ(), childVariable+"="+childElects, orderVariable+"="+source)
		commands[i].Stdout, commands[i].Stderr = &outputs[i], &complaints[i]
		if err := commands[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	leaders := make([]uuid.UUID, childRounds)
	winners := make([]int, childRounds)
	for i, command := range commands {
		if err := command.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, &complaints[i])
		}
	}
	terms := map[int]int64{}
	for i := range outputs {
		lines := 0
		for decoder := json.NewDecoder(&outputs[i]); decoder.More(); lines++ {
			var line electResult
			if err := decoder.Decode(&line); err != nil {
				t.Fatal(err)
			}
			if leaders[line.Round] == uuid.Nil {
				leaders[line.Round], terms[line.Round] = line.Leader, line.Term
			}
			if leaders[line.Round] != line.Leader || line.Term != terms[line.Round] {
				t.Errorf("round %d: one got %s, another %s, in term %d", line.Round, leaders[line.Round], line.Leader, line.Term)
			}
			if line.Candidate == line.Leader {
				winners[line.Round]++
			}
		}
		if lines != childRounds*childCandidates {
			t.Errorf("process %d wrote %d lines", i, lines)
		}
	}
	for round, n := range winners {
		if n != 1 {
			t.Errorf("round %d has %d winners", round, n)
		}
	}
}
