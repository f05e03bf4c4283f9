package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

// patience bounds every wait for a child.
const patience = 60 * time.Second

// child is a process of the benchmark.
type child struct {
	*children.Child
	kind string
}

var serial int

// spawn starts a child; before is put in front of its command line.
func (b *bench) spawn(ctx context.Context, before []string, kind string, args ...string) (*child, error) {
	serial++
	name := fmt.Sprintf("n%d", serial)
	started, err := children.Start(children.Options{Name: name, Before: before, Args: append([]string{kind, "-name", name}, args...)})
	if err != nil {
		return nil, err
	}
	c := &child{started, kind}
	b.children, b.all = append(b.children, c), append(b.all, c)
	_, err = c.Await(ctx, "ready", time.Time{})
	return c, err
}

// calls returns the calls of a node's engine since the previous request.
func (c *child) calls(ctx context.Context) ([]traced, error) {
	asked := time.Now()
	if err := c.Say("trace"); err != nil {
		return nil, err
	}
	report, err := c.Await(ctx, "trace", asked)
	if err != nil {
		return nil, err
	}
	var calls []traced
	err = json.Unmarshal(report.Data, &calls)
	return calls, err
}

// kill ends the child.
func (b *bench) kill(c *child) {
	c.Kill()
	b.children = slices.DeleteFunc(b.children, func(other *child) bool { return other == c })
}

func (b *bench) killAll() {
	for len(b.children) > 0 {
		b.kill(b.children[0])
	}
	b.all = nil
}

// overlap is the longest time in which two processes both said that they lead.
func (b *bench) overlap() time.Duration {
	var longest time.Duration
	for i, one := range b.all {
		for _, other := range b.all[i+1:] {
			if one.kind != "child-node" || other.kind != "child-node" {
				continue
			}
			for _, both := range children.Overlaps(one.Leads(), other.Leads()) {
				longest = max(longest, both.Length())
			}
		}
	}
	return longest
}
