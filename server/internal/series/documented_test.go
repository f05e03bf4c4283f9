package series

import (
	"strconv"
	"testing"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/metrics"
)

func TestStoreKeepsFiftyThousandSeriesByDefault(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	snapshot := metrics.Snapshot{Node: uuid.New(), NodeName: "a", At: begin}
	for i := range 50_010 {
		snapshot.Series = append(snapshot.Series, gauge("g", 1, "n", strconv.Itoa(i)))
	}
	s.Append(snapshot)
	if s.Len() != 50_000 {
		t.Errorf("%d series are kept, want 50000", s.Len())
	}
}
