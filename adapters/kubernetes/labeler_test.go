package kubernetes_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	tenurekubernetes "github.com/exactly-one/tenure/adapters/kubernetes"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

const leadsBilling = "tenure.dev/leads-billing"

// labeledPod is a pod whose node campaigns for the role "billing".
type labeledPod struct {
	*postgrestest.Installation
	api      *api
	node     *tenure.Node
	election *tenure.Election
	stop     func() // of the labeler
}

func newLabeledPod(i *postgrestest.Installation, api *api, name string) *labeledPod {
	i.Helper()
	p := &labeledPod{Installation: i, api: api}
	p.node = postgrestest.OpenNode(i, i.NewBackend(), tenure.Config{Name: name, Lease: time.Minute})
	var err error
	if p.election, err = p.node.Election(tenure.NamedRole("billing")); err != nil {
		i.Fatal(err)
	}
	labeler, err := tenurekubernetes.NewLabeler(p.election, tenurekubernetes.LabelConfig{
		Pods: api.client(), Pod: name, Selector: "app=billing", ResyncInterval: 50 * time.Millisecond, RequestTimeout: time.Hour,
	})
	if err != nil {
		i.Fatal(err)
	}
	p.stop = postgrestest.Run(i, labeler.Run)
	if err := p.election.Start(i.Context()); err != nil {
		i.Fatal(err)
	}
	return p
}

func (p *labeledPod) lead() {
	p.Helper()
	if _, err := p.election.WaitForLeadership(p.Context()); err != nil {
		p.Fatal(err)
	}
}

func (p *labeledPod) awaitLabeled(names ...string) {
	p.Helper()
	p.Await("the labels to be on "+strings.Join(names, " and "), func() bool { return slices.Equal(p.api.labeled(), names) })
}

// The label follows the leader, and only the verbs of the manifest are used.
func TestLabelFollowsTheLeader(t *testing.T) {
	t.Parallel()
	i, api := postgrestest.New(t), newAPI(t, "pod-a", "pod-b")
	a := newLabeledPod(i, api, "pod-a")
	a.lead()
	a.awaitLabeled("pod-a")
	b := newLabeledPod(i, api, "pod-b")
	leaders := []*labeledPod{a, b}
	for n := range 4 {
		leader, standby := leaders[n%2], leaders[(n+1)%2]
		if err := leader.election.HandOver(t.Context(), standby.node.ID()); err != nil {
			t.Fatal(err)
		}
		standby.lead()
		standby.awaitLabeled(standby.node.Name())
	}
	i.Exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE id = $1`, a.node.ID())
	i.Await("one label, on the leader's pod", func() bool {
		labeled := api.labeled()
		return len(labeled) == 1 && (a.election.IsLeader() && labeled[0] == "pod-a" || b.election.IsLeader() && labeled[0] == "pod-b")
	})
	api.mu.Lock()
	defer api.mu.Unlock()
	if verbs := slices.Sorted(maps.Keys(api.verbs)); !slices.Equal(verbs, []string{"GET", "PATCH"}) {
		t.Errorf("the API server was asked to %v; want only to list and patch", verbs)
	}
}

// A node that resigns, or whose labeler stops, removes the label from its pod, although
// no other node leads.
func TestLabelIsRemovedWithoutASuccessor(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*labeledPod) error{
		"the election stops": func(p *labeledPod) error { return p.election.Shutdown(p.Context()) },
		"the labeler stops":  func(p *labeledPod) error { p.stop(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newLabeledPod(postgrestest.New(t), newAPI(t, "pod-a"), "pod-a")
			p.awaitLabeled("pod-a")
			if err := end(p); err != nil {
				t.Fatal(err)
			}
			p.awaitLabeled()
		})
	}
}

// The next leader removes the label of a pod that could not do it, also if the pod
// sets it later, and restores its own.
func TestLeaderRemovesStaleLabels(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "dead", "pod-a")
	api.set("dead", leadsBilling)
	p := newLabeledPod(postgrestest.New(t), api, "pod-a")
	p.awaitLabeled("pod-a")
	api.set("dead", leadsBilling)
	p.awaitLabeled("pod-a")
	api.mu.Lock()
	delete(api.pods["pod-a"], leadsBilling)
	api.mu.Unlock()
	p.awaitLabeled("pod-a")
}

// A standby whose container was restarted has the label of its last term.
func TestStandbyRemovesItsLabelAtTheStart(t *testing.T) {
	t.Parallel()
	i, api := postgrestest.New(t), newAPI(t, "pod-a", "pod-b")
	other := i.Node("other", tenure.Config{})
	election, err := other.Election(tenure.NamedRole("billing"))
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := election.WaitForLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	api.set("pod-a", leadsBilling)
	newLabeledPod(i, api, "pod-a").awaitLabeled()
}

// While the API server fails or does not answer, terms begin and end without delay; the
// label follows when it answers.
func TestFailingAPIDelaysNoElection(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*api){
		"errors": func(a *api) { a.fail(true) }, "no response": (*api).stall,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, api := postgrestest.New(t), newAPI(t, "pod-a", "pod-b")
			a := newLabeledPod(i, api, "pod-a")
			a.lead()
			a.awaitLabeled("pod-a")
			b := newLabeledPod(i, api, "pod-b")
			fault(api)
			asked := api.count()
			i.Await("a request that fails", func() bool { return api.count() > asked })
			for range 2 {
				for _, pods := range [][2]*labeledPod{{a, b}, {b, a}} {
					ctx, cancel := context.WithTimeout(t.Context(), postgrestest.Patience)
					if err := pods[0].election.HandOver(ctx, pods[1].node.ID()); err != nil {
						t.Error(err)
					}
					cancel()
					pods[1].lead()
				}
			}
			if got := api.labeled(); !slices.Equal(got, []string{"pod-a"}) {
				t.Errorf("labeled during the fault: %v", got)
			}
			if err := a.election.HandOver(t.Context(), b.node.ID()); err != nil {
				t.Fatal(err)
			}
			b.lead()
			api.fail(false)
			b.awaitLabeled("pod-b")
		})
	}
}

func TestNewLabelerRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	i, api := postgrestest.New(t), newAPI(t)
	node := i.Node("node-1", tenure.Config{})
	usable := tenurekubernetes.LabelConfig{Pods: api.client(), Pod: "pod-a", Selector: "app=billing"}
	for name, c := range map[string]struct {
		role   string
		change func(*tenurekubernetes.LabelConfig)
		valid  bool
	}{
		"usable":                   {role: "a", valid: true},
		"role that is no label":    {role: "gocron/report"},
		"role that is too long":    {role: strings.Repeat("r", 58)},
		"long role":                {role: strings.Repeat("r", 57), valid: true},
		"role with a chosen label": {role: "gocron/weekly", change: func(c *tenurekubernetes.LabelConfig) { c.Label = "example.com/leads" }, valid: true},
		"no client":                {role: "b", change: func(c *tenurekubernetes.LabelConfig) { c.Pods = nil }},
		"no pod":                   {role: "c", change: func(c *tenurekubernetes.LabelConfig) { c.Pod = "" }},
		"no selector":              {role: "d", change: func(c *tenurekubernetes.LabelConfig) { c.Selector = "" }},
		"invalid selector":         {role: "e", change: func(c *tenurekubernetes.LabelConfig) { c.Selector = "app in" }},
		"negative interval":        {role: "f", change: func(c *tenurekubernetes.LabelConfig) { c.ResyncInterval = -1 }},
	} {
		election, err := node.Election(tenure.NamedRole(c.role))
		if err != nil {
			t.Fatal(err)
		}
		config := usable
		if c.change != nil {
			c.change(&config)
		}
		_, err = tenurekubernetes.NewLabeler(election, config)
		if c.valid && err != nil || !c.valid && !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
