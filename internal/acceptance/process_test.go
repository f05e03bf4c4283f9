package acceptance_test

import (
	"context"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

// process is a node in a separate process: this test program again.
type process struct {
	*children.Child
	t *testing.T
}

// spawn starts a child and waits until it campaigns for its roles; before is put in
// front of its command line. The child is killed with the test.
func (c *cluster) spawn(kind string, o order, before ...string) *process {
	c.t.Helper()
	told, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	env, died := c.checks.steps.Child()
	child, err := children.Start(children.Options{
		Name: o.Name, Before: before, Env: append(env, childVariable+"="+kind, orderVariable+"="+string(told)), Ended: died,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(child.Kill)
	p := &process{child, c.t}
	p.await("ready", time.Time{})
	return p
}

// await waits for a report of a kind since a moment.
func (p *process) await(kind string, since time.Time) children.Report {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	r, err := p.Await(ctx, kind, since)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// query sends a line to the child's standard input and decodes the data of the report
// of a kind that answers it.
func (p *process) query(line, kind string, data any) {
	p.t.Helper()
	asked := time.Now()
	p.say(line)
	if err := json.Unmarshal(p.await(kind, asked).Data, data); err != nil {
		p.t.Fatalf("%s: %v", p.Name, err)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Signal(s); err != nil {
		p.t.Fatalf("%s: %v: %v", p.Name, s, err)
	}
}

// say sends a line to the child's standard input.
func (p *process) say(line string) {
	p.t.Helper()
	if err := p.Say(line); err != nil {
		p.t.Fatalf("%s: %v", p.Name, err)
	}
}

// answer reports data.
func answer(kind string, data any) {
	content, err := json.Marshal(data)
	if err != nil {
		panic(err) // it has numbers and text only
	}
	children.Send(children.Report{Kind: kind, Data: content})
}
