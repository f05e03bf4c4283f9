//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

// injection makes a fault, and returns what ends it and how it was carried out. heal
// may be nil.
type injection func(ctx context.Context, b *bed, m *member, s script.Step) (heal func(context.Context) error, note string, err error)

// injections are the faults by kind. m is the target, or nil.
var injections = map[string]injection{
	"kill": killNode, "terminate": terminateNode, "stop-short": stopNode, "stop-long": stopNode, "freeze": freezeNode,
	"cut": cut, "cut-to-server": cutToServer, "cut-to-node": cutToNode, "delay": delay, "reset": reset,
	"server-kill": killServer, "server-restart": restartServer, "server-stop": stopServer, "backend-kill": killBackend,
	"checkpoint": loadServer, "disk-full": fillDisk, "clock-step": stepClock, "clock-jump": stepClock,
	"terminate-sessions": terminateSessions, "lock-table": lockTables, "read-only": setting("default_transaction_read_only", "on"),
	"statement-timeout": setting("statement_timeout", "50ms"), "idle-timeout": setting("idle_session_timeout", "300ms"),
	"step-down": stepDown, "drain": drain, "migrate-down": migrateDown, "delete-node": deleteNode,
	"vacuum-full": vacuum, "open-transaction": holdRow, "receiver-down": receiverDown, "receiver-slow": receiverSlow,
	"log-unreadable": hideColumn, "view-pause": pauseView, "view-rebuild": rebuildView, "poison": poison,
	"schedule-pause": pauseSchedule, "schedule-trigger": triggerRun,
}

// injectTime bounds the making and the ending of a fault.
const injectTime = time.Minute

// play carries out a script and returns when all faults have ended.
func (b *bed) play(ctx context.Context, steps []script.Step) {
	began := time.Now()
	var running sync.WaitGroup
	for _, s := range steps {
		running.Go(func() {
			if pause(ctx, time.Until(began.Add(s.At))) == nil {
				b.step(ctx, s)
			}
		})
	}
	running.Wait()
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step carries out one step. Faults of one node, and faults of the server, follow one
// another.
func (b *bed) step(ctx context.Context, s script.Step) {
	var m *member
	if s.Node > 0 {
		if s.Node > len(b.members) {
			b.recordViolation("%v: there is no such node", s)
			return
		}
		m = b.members[s.Node-1]
		defer take(m.turn)()
	}
	if k, _ := script.Find(s.Kind); k.Alone || k.Needs&script.Server != 0 {
		defer take(b.turn)()
	}
	fault := record.Fault{Step: s.String(), Kind: s.Kind, Node: s.Node, From: record.Now()}
	injecting, cancel := context.WithTimeout(ctx, injectTime)
	heal, note, err := injections[s.Kind](injecting, b, m, s)
	cancel()
	fault.Note = note
	if err != nil {
		fault.Failed = err.Error()
	} else {
		_ = pause(ctx, s.For) // an interrupt ends the fault early
	}
	if heal != nil {
		healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), injectTime)
		if err := heal(healing); err != nil && ctx.Err() == nil {
			b.recordViolation("%v cannot be undone: %v", s, err)
		}
		cancel()
	}
	fault.To = record.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.history.Faults = append(b.history.Faults, fault)
	if b.verbose || fault.Failed != "" {
		fmt.Printf("  %v: %v\n", s, cmp.Or(fault.Failed, fault.Note, "done"))
	}
}

func take(turn chan struct{}) (release func()) {
	turn <- struct{}{}
	return func() { <-turn }
}
