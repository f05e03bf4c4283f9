package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/testkit"
)

// join makes a member of a cluster, whose node the handler serves unless it is nil.
func join(t *testing.T, db *database, name string, h *Handler, config cluster.Config) *cluster.Member {
	t.Helper()
	m, err := cluster.Join(t.Context(), db, tenure.Config{Name: name, Logger: silent}, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if h != nil {
		h.AttachMember(m, "shop")
	}
	return m
}

// lead makes a member campaign for a role until it leads.
func lead(t *testing.T, m *cluster.Member, role string) {
	t.Helper()
	election, err := m.Node().Election(tenure.NamedRole(role))
	if err == nil {
		err = election.Start(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	elected(t, m.Node(), role)
}

// TestClusterListsNodesAndLeaders: the nodes and who leads, by every node, at most a second old.
func TestClusterListsNodesAndLeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{})
		one := join(t, db, "one", h, cluster.Config{HTTPPort: 8080, Labels: map[string]string{"zone": "eu"}})
		lead(t, one, "billing")
		two := join(t, db, "two", nil, cluster.Config{})
		seen := decode[record.Cluster](t, call(t, h, "GET", "/v1/cluster", "").want(t, 200).body)
		if seen.Name != "shop" || seen.Counts != (record.Counts{Active: 2, Total: 2}) || len(seen.Nodes) != 2 || len(seen.Leaders) != 1 {
			t.Fatalf("%+v", seen)
		}
		first := seen.Nodes[0]
		if first.ID != one.ID() || strings.Join(first.Leads, "") != "billing" || first.HTTPPort != 8080 || first.Labels["zone"] != "eu" ||
			seen.Leaders[0].Leader.Node != first.ID {
			t.Errorf("%+v", seen)
		}
		all := decode[nodesRecord](t, call(t, h, "GET", "/v1/nodes", "").want(t, 200).body)
		if len(all.Nodes) != 2 || all.Nodes[1].Name != "two" {
			t.Errorf("%+v", all)
		}
		for _, text := range []string{"two", two.ID().String(), strings.ToUpper(two.ID().String()[:8])} {
			if node := decode[record.Node](t, call(t, h, "GET", "/v1/nodes/"+text, "").want(t, 200).body); node.Name != "two" {
				t.Errorf("%q: %+v", text, node)
			}
		}
		if r := call(t, h, "GET", "/v1/nodes/tow", "").refused(t, 404, codeUnknownNode); !strings.Contains(r.body, `did you mean \"two\"?`) {
			t.Errorf("%s", r.body)
		}
		join(t, db, "two", nil, cluster.Config{})
		time.Sleep(lookUpInterval)
		call(t, h, "GET", "/v1/nodes/two", "").refused(t, 409, codeAmbiguous)
		time.Sleep(lookUpInterval)
		db.failWith(errors.New("down"))
		call(t, h, "GET", "/v1/cluster", "").refused(t, 503, codeDatabase)
		db.failWith(nil)
	})
}

// TestUnreadyMemberReportsReason: a member that waits for others or drains says why it is not
// ready.
func TestUnreadyMemberReportsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{})
		unready := func(want string) {
			t.Helper()
			r := decode[readyRecord](t, call(t, h, "GET", "/readyz", "").want(t, 503).body)
			if r.Ready || !strings.Contains(r.Reason, want) {
				t.Errorf("%+v, want %s", r, want)
			}
		}
		one := join(t, db, "one", h, cluster.Config{MinNodes: 2})
		unready("1 of 2 node")
		other := join(t, db, "two", nil, cluster.Config{})
		if err := one.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		call(t, h, "GET", "/readyz", "").want(t, 200)
		if err := one.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		unready("draining")
		if err := one.Undrain(t.Context()); err != nil {
			t.Fatal(err)
		}
		call(t, h, "GET", "/readyz", "").want(t, 200)
		if err := other.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		call(t, h, "GET", "/readyz", "").want(t, 200) // it is ready with fewer nodes, too
	})
}

// TestAuthorizedClientDrainsNode: any node drains and comes back at the request of who may write.
func TestAuthorizedClientDrainsNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{Token: newToken(t)})
		join(t, db, "one", h, cluster.Config{})
		const drain, undrain = "/v1/nodes/two/drain", "/v1/nodes/two/undrain"
		call(t, h, "POST", "/v1/nodes/one/drain", "", authorized...).refused(t, 409, codeLastNode)
		two := join(t, db, "two", nil, cluster.Config{})
		lead(t, two, "billing")
		call(t, h, "POST", drain, "").refused(t, 401, codeUnauthorized)
		call(t, h, "POST", drain, `{"to":"three"}`, authorized...).refused(t, 404, codeUnknownNode)
		call(t, h, "POST", undrain, `{"force":true}`, authorized...).refused(t, 400, codeInvalidBody)
		call(t, h, "POST", "/v1/nodes/three/drain", "", authorized...).refused(t, 404, codeUnknownNode)
		synctest.Wait()
		if two.Ready() != nil {
			t.Fatal("a request that was refused changed something")
		}

		asked := decode[record.Node](t, call(t, h, "POST", drain, `{"to":"one"}`, authorized...).want(t, 202).body)
		if asked.ID != two.ID() || asked.Status != tenure.StatusActive {
			t.Errorf("%+v", asked)
		}
		await := func(what string, holds func(tenure.Description) bool) {
			t.Helper()
			testkit.AwaitNil(t, time.Minute, func() error {
				if d := two.Node().Description(); !holds(d) {
					return fmt.Errorf("not %s: %+v", what, d)
				}
				return nil
			})
		}
		await("drained", func(d tenure.Description) bool {
			return d.Status == tenure.StatusDraining && d.Drained && d.StatusBy == askedOverHTTP
		})
		call(t, h, "POST", "/v1/nodes/one/drain", "", authorized...).refused(t, 409, codeLastNode)
		call(t, h, "POST", undrain, "", authorized...).want(t, 202)
		await("back", func(d tenure.Description) bool { return d.Status == tenure.StatusActive && d.StatusBy == askedOverHTTP })
		synctest.Wait()
		time.Sleep(2 * lookUpInterval) // what was looked up is old
		if back := decode[record.Node](t, call(t, h, "GET", "/v1/nodes/two", "").want(t, 200).body); back.StatusBy != askedOverHTTP {
			t.Errorf("%+v; want it to say who asked", back)
		}
		call(t, h, "POST", "/v1/nodes/one/drain", `{"force":true}`, authorized...).want(t, 202)
	})
}

// TestWatchReportsEachNodeChangeOnce: a client sees which nodes come, change and go, each once, also
// those that it missed while it was away.
func TestWatchReportsEachNodeChangeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{})
		client, _, _ := serveInMemory(t, h)
		join(t, db, "one", h, cluster.Config{})
		synctest.Wait() // the handler knows who is there
		f := followPath(t, client, inMemory, "/v1/nodes/watch", "")
		expect := func(kind string) record.Profile {
			t.Helper()
			m := f.expect(t, kind)
			change := decode[record.NodeChange](t, m.data)
			if change.Change != kind || time.Time(change.Time).IsZero() {
				t.Errorf("%+v", change)
			}
			return change.Node
		}
		two := join(t, db, "two", nil, cluster.Config{})
		if node := expect(kindJoined); node.Name != "two" || node.ID != two.ID() || len(node.Roles) != 4 {
			t.Errorf("%+v", node)
		}
		time.Sleep(10 * time.Second) // heartbeats and loads cause no event
		if err := two.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		node := expect(kindUpdated)
		for !node.Drained {
			node = expect(kindUpdated)
		}
		if node.Name != "two" || node.Status != tenure.StatusDraining {
			t.Errorf("%+v", node)
		}
		f.close()
		if err := two.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		join(t, db, "three", nil, cluster.Config{})
		f = followPath(t, client, inMemory, "/v1/nodes/watch", f.last)
		if node := expect(kindLeft); node.Name != "two" {
			t.Errorf("%+v", node)
		}
		if node := expect(kindJoined); node.Name != "three" {
			t.Errorf("%+v", node)
		}
	})
}
