//go:build unix

package leaderhttp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// follower is a client that sends requests to the leader itself: when a node refuses a
// request, it sends the same one to the leader that the node names, or to the next node.
type follower struct {
	fleet *fleet
	http  *http.Client
	url   string
	next  int // in the fleet's URLs
	// broken has the requests without an answer, which may have been handled, by the
	// URL of the node. A node that is being killed can break several connections: its
	// listener may close last.
	broken map[string][]int64
}

// send sends a request until a node handles it or the connection to that node breaks.
func (c *follower) send(ctx context.Context, number int64) (handled bool) {
	for ctx.Err() == nil {
		status, leader, err := post(context.WithoutCancel(ctx), c.http, c.url+"/only", number)
		switch dial := (*net.OpError)(nil); {
		case status == http.StatusOK && err == nil:
			return true
		case status == http.StatusServiceUnavailable && err == nil && leader != "" && c.url != "http://"+leader:
			c.url = "http://" + leader
		case status == http.StatusServiceUnavailable && err == nil, errors.As(err, &dial) && dial.Op == "dial":
			c.turn()
			time.Sleep(time.Millisecond) // as clients do before they send a request again
		case err != nil:
			c.broken[c.url] = append(c.broken[c.url], number)
			c.turn()
			return false
		default:
			c.fleet.Errorf("status %d, want 200, or 503 of a node that does not lead", status)
			return false
		}
	}
	return false
}

// turn turns to the next node.
func (c *follower) turn() {
	c.next++
	c.url = c.fleet.urls[c.next%len(c.fleet.urls)]
}

// check reports the requests that were lost: with a node that was killed, more than the
// one in flight, and with another one, any.
func (c *follower) check() {
	for url, numbers := range c.broken {
		if !c.fleet.killed(url) {
			c.fleet.Errorf("a node that was not killed broke the connections of %d requests", len(numbers))
		}
		if n := c.fleet.count(`SELECT count(*) FROM {schema}.received WHERE number = ANY($1)`, numbers); n > 1 {
			c.fleet.Errorf("a client lost %d requests that a killed node received, want at most the one in flight", n)
		}
	}
}

// The leader is killed twice while clients send requests to handlers that serve on the
// leader only. No other node handles a request, one that was refused is not handled,
// and each client loses at most the one in flight.
func TestKilledLeaderOfLeaderOnlyLosesAtMostRequestsInFlight(t *testing.T) {
	f := newFleet(t, time.Minute, "a", "b", "c") // a lease that no load of the machine uses up
	const clients, kills = 8, 2
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var (
		load             sync.WaitGroup
		numbers, success atomic.Int64
		followers        [clients]follower
	)
	for i := range followers {
		c := &followers[i]
		*c = follower{fleet: f, http: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}, url: f.urls[i%len(f.urls)], next: i, broken: map[string][]int64{}}
		load.Go(func() {
			defer c.http.CloseIdleConnections()
			for ctx.Err() == nil {
				if c.send(ctx, numbers.Add(1)) {
					success.Add(1)
				}
			}
		})
	}
	f.kill(kills)
	stop()
	load.Wait()
	for i := range followers {
		followers[i].check()
	}
	f.check(success.Load())
	t.Logf("%d requests, %d succeeded", numbers.Load(), success.Load())
}
