package main

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

// logSettings make the server log what a slow round may be due to. The server writes the
// end of a session after it has released the locks.
var logSettings = map[string]string{
	"log_line_prefix":             "%n [%p] %q%a: ",
	"log_checkpoints":             "on",
	"log_autovacuum_min_duration": "0",
	"log_disconnections":          "on",
}

// serverLog is what the server logged: events with their times, which are exact to a
// millisecond.
type serverLog struct {
	checkpoints, vacuums []children.Interval
	ended                map[string][]time.Time // sessions, by application_name
}

var (
	logLine    = regexp.MustCompile(`^(\d+)\.(\d{3}) \[\d+\] (?:(.*): )?LOG:  (.*)$`)
	logElapsed = regexp.MustCompile(`elapsed: ([0-9.]+) s`)
)

// parseServerLog reads a log that was written with logSettings. A checkpoint that has not
// ended lasts until the given time.
func parseServerLog(text string, until time.Time) serverLog {
	found := serverLog{ended: map[string][]time.Time{}}
	var checkpoint, vacuum time.Time
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if elapsed := logElapsed.FindStringSubmatch(line); elapsed != nil && !vacuum.IsZero() {
			seconds, _ := strconv.ParseFloat(elapsed[1], 64) // it matched
			found.vacuums = append(found.vacuums, children.Interval{From: vacuum.Add(-time.Duration(seconds * float64(time.Second))), To: vacuum})
			vacuum = time.Time{}
		}
		match := logLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		at := logTime(match[1], match[2])
		program, message := match[3], match[4]
		switch {
		case strings.HasPrefix(message, "checkpoint starting:"):
			checkpoint = at
		case strings.HasPrefix(message, "checkpoint complete:") && !checkpoint.IsZero():
			found.checkpoints = append(found.checkpoints, children.Interval{From: checkpoint, To: at})
			checkpoint = time.Time{}
		case strings.HasPrefix(message, "automatic "):
			vacuum = at // its duration follows
		case strings.HasPrefix(message, "disconnection:"):
			found.ended[program] = append(found.ended[program], at)
		}
	}
	if !checkpoint.IsZero() {
		found.checkpoints = append(found.checkpoints, children.Interval{From: checkpoint, To: until})
	}
	return found
}

func logTime(seconds, thousandths string) time.Time {
	s, _ := strconv.ParseInt(seconds, 10, 64) // both are digits
	ms, _ := strconv.ParseInt(thousandths, 10, 64)
	return time.Unix(s, ms*int64(time.Millisecond))
}

// addTo adds to the facts of a round what the server logged in it. leader is the node
// that led before.
func (l serverLog) addTo(f *facts, within children.Interval, leader string) {
	for _, c := range l.checkpoints {
		f.Checkpoint += max(0, inMilliseconds(c.Shared(within)))
	}
	for _, v := range l.vacuums {
		f.Vacuum += max(0, inMilliseconds(v.Shared(within)))
	}
	for _, at := range l.ended["tenure "+leader+" session"] {
		after := at.Sub(within.From)
		if after > -time.Millisecond && !at.After(within.To) {
			noticed := max(0, inMilliseconds(after))
			f.Noticed = &noticed
			return
		}
	}
}

// maxLog bounds what is read of the server's log.
const maxLog = 256 << 20

// readServerLog reads the log since an offset.
func readServerLog(path string, since int64) (serverLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return serverLog{}, err
	}
	defer file.Close() // it was only read
	if _, err := file.Seek(since, io.SeekStart); err != nil {
		return serverLog{}, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxLog+1))
	if err == nil && len(content) > maxLog {
		err = errors.New("the server's log is too long: make fewer rounds")
	}
	return parseServerLog(string(content), time.Now()), err
}
