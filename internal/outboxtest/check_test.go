package outboxtest

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

func TestCheckFindsLostAndReorderedEntries(t *testing.T) {
	t.Parallel()
	at := func(position int64) processor.Cursor { return processor.Cursor{Transaction: 7, Position: position} }
	log := []Entry{{at(1), ""}, {at(2), ""}, {at(3), ""}}
	in := func(epoch, position int64) outbox.Position {
		return outbox.Position{Epoch: epoch, Cursor: at(position)}
	}
	d := func(term, position int64) Delivery {
		return Delivery{ID: at(position).String(), Term: term, Position: in(5, position)}
	}
	again := func(term, position int64) Delivery { // after a failover
		return Delivery{ID: at(position).String(), Term: term, Position: in(6, position)}
	}
	for name, test := range map[string]struct {
		deliveries []Delivery
		want       string // part of some fault; empty if there must be none
		result     Result
	}{
		"all once":                {[]Delivery{d(1, 1), d(1, 2), d(1, 3)}, "", Result{Terms: 1}},
		"repeated in a new term":  {[]Delivery{d(1, 1), d(1, 2), d(2, 2), d(2, 3)}, "", Result{Repeated: 1, Terms: 2}},
		"stale, and sent again":   {[]Delivery{d(1, 1), d(2, 2), d(1, 2), d(2, 3)}, "", Result{Repeated: 1, Stale: 1, Terms: 2}},
		"in a new epoch":          {[]Delivery{d(1, 1), d(1, 2), again(2, 1), again(2, 2), again(2, 3)}, "", Result{Repeated: 2, Terms: 2}},
		"lost":                    {[]Delivery{d(1, 1), d(1, 3)}, "never arrived", Result{Terms: 1}},
		"stale alone":             {[]Delivery{d(1, 1), d(2, 2), d(1, 3)}, "a consumer", Result{Stale: 1, Terms: 2}},
		"out of order":            {[]Delivery{d(1, 2), d(1, 1), d(1, 3)}, "came after", Result{Terms: 1}},
		"repeated in a term":      {[]Delivery{d(1, 1), d(1, 2), d(1, 2), d(1, 3)}, "came after", Result{Repeated: 1, Terms: 1}},
		"another id":              {[]Delivery{d(1, 1), d(1, 2), {"x", 2, in(5, 2), ""}, d(2, 3)}, "came as", Result{Terms: 2}},
		"an id of another event":  {[]Delivery{d(1, 1), d(1, 2), {at(1).String(), 1, in(5, 3), ""}}, "is the event", Result{Repeated: 1, Terms: 1}},
		"not in the log":          {[]Delivery{d(1, 1), d(1, 2), d(1, 3), d(1, 4)}, "a consumer", Result{Terms: 1}},
		"a gap at change of term": {[]Delivery{d(1, 1), d(2, 3), d(3, 2)}, "a consumer", Result{Terms: 3}},
	} {
		result, faults := Check(log, test.deliveries)
		all := strings.Join(faults, "; ")
		if (test.want == "") != (all == "") || !strings.Contains(all, test.want) || result != test.result {
			t.Errorf("%s: found %q and %+v, want %q and %+v", name, all, result, test.want, test.result)
		}
	}
}
