package memory

import (
	"sync"
	"time"
)

// Deaths are the deaths noticed by the watch of a session and not recorded yet, each with
// its time by the database's clock. The node's own session tries the roles of a dead node
// before the watch marks it dead, and closes its terms as of this time. The methods are
// safe for concurrent use.
type Deaths struct {
	mu        sync.Mutex
	noticedAt map[int32]*time.Time // by incarnation; nil if the watch did not see it
}

// Add remembers and returns when the death of an incarnation was noticed first. The time
// is nil if the session had ended before the watch waited for it.
func (d *Deaths) Add(incarnation int32, at *time.Time) *time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if earlier, known := d.noticedAt[incarnation]; known {
		return earlier
	}
	if d.noticedAt == nil {
		d.noticedAt = map[int32]*time.Time{}
	}
	d.noticedAt[incarnation] = at
	return at
}

// Recorded forgets a death after its time is in the row of the node.
func (d *Deaths) Recorded(incarnation int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.noticedAt, incarnation)
}

// Arguments are the deaths as parameters of a statement.
func (d *Deaths) Arguments() (incarnations []int32, noticedAt []*time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	incarnations, noticedAt = []int32{}, []*time.Time{}
	for incarnation, at := range d.noticedAt {
		incarnations, noticedAt = append(incarnations, incarnation), append(noticedAt, at)
	}
	return incarnations, noticedAt
}
