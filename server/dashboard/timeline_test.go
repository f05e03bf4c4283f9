package dashboard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/history"
)

// longTimeline is one of many terms, ten seconds each, by three nodes in turn.
func longTimeline(terms int) (line *timeline, began time.Time) {
	nodes := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	line = &timeline{index: map[uuid.UUID]int32{}, textAt: map[string]int32{}}
	began = time.UnixMilli(1_700_000_000_000)
	for i := range terms {
		t := history.Term{
			Term: int64(i + 1), Node: nodes[i%3], NodeName: fmt.Sprint(i % 3), Began: began.Add(time.Duration(i) * 10 * time.Second), Reason: history.EndResigned,
			PrecedingVacancy: 5 * time.Millisecond, PrecedingSilence: -1,
		}
		if i < terms-1 {
			t.Ended = t.Began.Add(9 * time.Second)
		}
		line.add(t)
	}
	return line, began
}

// However many terms there are, the timeline has few spans, which cover all of
// them; after zooming in, each term is a separate span.
func TestTimelineDetailDependsOnZoom(t *testing.T) {
	t.Parallel()
	const terms, most = 100_000, 500
	line, began := longTimeline(terms)
	end := began.Add(terms * 10 * time.Second)
	whole := line.view(began.Add(-time.Hour), end, most)
	covered := 0
	for _, s := range whole.Spans {
		covered += s[4].(int)
	}
	if len(whole.Spans) > most+2 || covered != terms || whole.Total != terms || whole.First != began.UnixMilli() || whole.Spans[len(whole.Spans)-1][1] != nil {
		t.Errorf("the whole: %d spans of %d terms, from %d", len(whole.Spans), covered, whole.First)
	}
	near := line.view(began.Add(1000*time.Second), began.Add(1100*time.Second), most)
	if len(near.Spans) != 11 || near.Spans[0][3] != int64(101) || near.Spans[0][4] != 1 || near.Spans[0][2] != int32(100%3) {
		t.Errorf("from near: %v", near.Spans)
	}
	if before := line.view(began.Add(-time.Hour), began.Add(-time.Minute), most); len(before.Spans) != 0 {
		t.Errorf("before the first term: %v", before.Spans)
	}
	rows, total := line.page("", terms-2, 10)
	if total != terms || len(rows) != 2 || rows[1].Term != 1 || rows[1].Ended == nil || *rows[1].Vacant != 0.005 {
		t.Errorf("the last page: %+v of %d", rows, total)
	}
	if rows, _ := line.page("", terms+5, 10); len(rows) != 0 {
		t.Errorf("beyond the last page: %v", rows)
	}
}

// Terms arrive in any order, more than once, and while the history is still
// being read.
func TestTimelineFollowsTermsInAnyOrder(t *testing.T) {
	t.Parallel()
	line, began := longTimeline(3)
	line.reading = true
	ended := history.Term{Term: 3, Node: uuid.New(), NodeName: "x", Began: began.Add(20 * time.Second), Ended: began.Add(25 * time.Second), Reason: history.EndCrashed}
	line.follow(ended)
	if line.spans[2].ended != 0 || len(line.pending) != 1 {
		t.Error("a change was used before the history was read")
	}
	line.reading = false
	next := history.Term{Term: 4, Node: uuid.New(), NodeName: "y", Began: began.Add(30 * time.Second), PrecedingVacancy: -1, PrecedingSilence: -1}
	for _, term := range []history.Term{next, ended, next} {
		line.follow(term)
	}
	var terms []int64
	for _, s := range line.spans {
		terms = append(terms, s.term)
	}
	rows, _ := line.page("", 0, 2)
	if !slices.Equal(terms, []int64{1, 2, 3, 4}) || rows[0].Vacant != nil || rows[1].Reason != string(history.EndCrashed) {
		t.Errorf("%v: %+v", terms, rows)
	}
}

// The size of the plot does not grow with the number of failovers.
func TestPlotOfFailoversIsBounded(t *testing.T) {
	t.Parallel()
	var all []failoverRecord
	now := time.Now()
	for i := range maxTerms {
		all = append(all, failoverRecord{gap: gap{Without: new(float64(i%1000+1) / 1000)}, Kind: kindFailover, At: now.Add(-time.Duration(i) * time.Minute)})
	}
	total := 0.0
	plotted := points(all)
	for _, p := range plotted {
		total += p[2]
	}
	s := summary(all, now)
	if total != maxTerms || len(plotted) > 6000 || s.Failovers != maxTerms || s.Day != 24*60 || *s.Median.Without != 0.5 || *s.P99.Without != 0.99 || *s.Max.Without != 1 {
		t.Errorf("%d points of %v; %+v", len(plotted), total, s)
	}
}
