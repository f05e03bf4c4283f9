package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

// facts are what could be observed of one round, in milliseconds. A missing field was not
// observed.
type facts struct {
	// Noticed is from the fault until the server ended the leader's session, by its log.
	Noticed *float64 `json:"noticed_ms,omitempty"`
	// Woken is from the fault until the successor's session was woken; its first attempt
	// follows.
	Woken *float64 `json:"woken_ms,omitempty"`
	// Tries counts the successor's attempts, and Trying is how long they took.
	Tries  int     `json:"tries"`
	Trying float64 `json:"trying_ms"`
	// Retrying is how long the successor waited between attempts because the role was
	// held, Yielding because it was reserved or its term could not begin.
	Retrying float64 `json:"retrying_ms"`
	Yielding float64 `json:"yielding_ms"`
	// Flushing is how long heartbeats, which wait for the log's flush, held the
	// successor's session.
	Flushing float64 `json:"flushing_ms"`
	// Opening is how long the successor opened a session.
	Opening float64 `json:"opening_ms"`
	// CPUWait is the longest time for which one thread of a node or one process of the server was
	// ready to run and had no processor. A process that ended in the round is missing.
	CPUWait *float64 `json:"cpu_wait_ms,omitempty"`
	// Steal is the time that the host of the virtual machine took from a processor, Busy the
	// share of all processors' time in which they ran anything, and RunQueue
	// how many threads were ready at the end of the round.
	Steal    *float64 `json:"steal_ms,omitempty"`
	Busy     *float64 `json:"busy,omitempty"`
	RunQueue *int     `json:"run_queue,omitempty"`
	// Checkpoint and Vacuum are for how long the server made one.
	Checkpoint float64 `json:"checkpoint_ms"`
	Vacuum     float64 `json:"vacuum_ms"`
}

// Causes of a slow round.
const (
	causeMachine = "machine" // a processor was taken by others
	causeServer  = "server"  // a flush, a checkpoint, a vacuum, or a session whose end it noticed late
	causeTenure  = "tenure"  // a second attempt, a wait of courtesy
	causeUnknown = "unknown"
)

// cause attributes a round that took excess longer than usual to what explains at least
// half of that: the largest of what was measured in the round's own processes, or else
// something that the server did at the same time. expected is how late the server notices
// the fault by design.
func (f facts) cause(excess, expected time.Duration) (kind, detail string) {
	half := inMilliseconds(excess) / 2
	longest := 0.0
	for _, found := range []struct {
		milliseconds float64
		kind, text   string
	}{
		{value(f.CPUWait), causeMachine, "a thread waited %.1f ms for a processor"},
		{value(f.Steal), causeMachine, "the host took %.1f ms from a processor"},
		{f.Retrying, causeTenure, fmt.Sprintf("%d tries, with %%.1f ms between them", f.Tries)},
		{f.Yielding, causeTenure, "the successor waited %.1f ms although no node led"},
		{f.Flushing, causeServer, "a heartbeat waited %.1f ms for the log's flush"},
	} {
		if found.milliseconds > longest && found.milliseconds >= half {
			longest = found.milliseconds
			kind, detail = found.kind, fmt.Sprintf(found.text, found.milliseconds)
		}
	}
	late := value(f.Noticed) - inMilliseconds(expected)
	switch {
	case kind != "":
	case f.Checkpoint >= half && f.Checkpoint > 0:
		kind, detail = causeServer, fmt.Sprintf("a checkpoint ran for %.1f ms of it", f.Checkpoint)
	case f.Vacuum >= half && f.Vacuum > 0:
		kind, detail = causeServer, fmt.Sprintf("a vacuum ran for %.1f ms of it", f.Vacuum)
	case late >= half && late > 0 && f.processorsBusy():
		kind, detail = causeMachine, fmt.Sprintf("the server noticed the end of the session %.1f ms late, with %d threads ready to run", late, *f.RunQueue)
	case late >= half && late > 0:
		kind, detail = causeServer, fmt.Sprintf("it noticed the end of the session %.1f ms late", late)
	default:
		kind, detail = causeUnknown, f.largest()
	}
	return kind, detail
}

// processorsBusy reports whether more threads were ready than there are processors. The processes of
// the leader, which have ended, then had to wait for one in order to end.
func (f facts) processorsBusy() bool {
	return value(f.Busy) >= 0.9 && f.RunQueue != nil && *f.RunQueue > runtime.NumCPU()
}

// largest names the part of the round that took longest.
func (f facts) largest() string {
	if f.Woken == nil {
		return "the successor's calls were not observed"
	}
	text, longest := "most of it before the successor was woken", value(f.Woken)
	if f.Trying > longest {
		text, longest = "most of it in the attempts", f.Trying
	}
	if f.Opening > longest {
		text, longest = "most of it in opening a session", f.Opening
	}
	return fmt.Sprintf("%s: %.1f ms", text, longest)
}

func value(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

// addCalls adds what the successor's session did in a round.
func (f *facts) addCalls(within children.Interval, calls []traced) {
	var last *traced // the attempt before, if it found the role taken
	for i, c := range calls {
		shared := c.interval().Shared(within)
		switch {
		case shared < 0:
			continue
		case c.Call == callHeartbeat:
			f.Flushing += inMilliseconds(shared)
		case c.Call == callOpen:
			f.Opening += inMilliseconds(shared)
		case c.Call == callWait && c.Woken && f.Woken == nil && !c.interval().To.After(within.To):
			woken := inMilliseconds(c.interval().To.Sub(within.From))
			f.Woken = &woken
		case c.Call == callAcquire:
			f.Tries++
			f.Trying += inMilliseconds(shared)
			if last != nil {
				f.addPause(*last, c, within, calls)
			}
			last = &calls[i]
		}
	}
}

// addPause adds the time between two attempts, except that of heartbeats.
func (f *facts) addPause(before, after traced, within children.Interval, calls []traced) {
	pause := children.Interval{From: before.interval().To, To: after.interval().From}.Common(within)
	length := pause.Length()
	for _, c := range calls {
		if c.Call == callHeartbeat {
			length -= max(0, c.interval().Shared(pause))
		}
	}
	if before.Yields {
		f.Yielding += inMilliseconds(max(0, length))
	} else {
		f.Retrying += inMilliseconds(max(0, length))
	}
}
