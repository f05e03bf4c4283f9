//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/script"
	"github.com/exactly-one/tenure/lab/chaos/shrink"
)

// longestIdle is the longest time without a fault in a shortened script.
const longestIdle = 6 * time.Second

// shrink looks for the shortest script that still shows a violation of one of the
// same kinds. Each attempt is a run with a new server and new nodes.
func (c *command) shrink(ctx context.Context, steps []script.Step, v *check.Verdict) []script.Step {
	if c.shrinkTime <= 0 || len(steps) < 2 {
		return steps
	}
	deadline := time.Now().Add(c.shrinkTime)
	shrinking, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	kinds := map[string]bool{}
	for _, violation := range v.Violations {
		kinds[violation.Kind] = true
	}
	shortest := shrink.Minimize(steps, func(part []script.Step) bool {
		_, h, err := c.once(shrinking, script.Compact(part, longestIdle))
		if err != nil {
			if shrinking.Err() == nil {
				fmt.Printf("%d faults: %v\n", len(part), err)
			}
			return false
		}
		fails := slices.ContainsFunc(check.Check(h).Violations, func(found check.Violation) bool { return kinds[found.Kind] })
		fmt.Printf("%d faults: %s\n", len(part), map[bool]string{true: "it still fails", false: "no violation"}[fails])
		return fails
	}, func() bool { return shrinking.Err() == nil })
	return script.Compact(shortest, longestIdle)
}

// choose picks the kinds that are named, or all of them.
func choose(available []script.Kind, names string) ([]script.Kind, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(available), func(k script.Kind) bool { return k.Named }), nil
	}
	var chosen []script.Kind
	for name := range strings.SplitSeq(names, ",") {
		if layer := slices.DeleteFunc(slices.Clone(available), func(k script.Kind) bool { return k.Layer != name }); len(layer) > 0 {
			chosen = append(chosen, layer...)
			continue
		}
		k, found := script.Find(name)
		if !found {
			return nil, fmt.Errorf("there is no kind of fault %q", name)
		}
		if !slices.Contains(available, k) {
			return nil, fmt.Errorf("%s cannot be made here", name)
		}
		chosen = append(chosen, k)
	}
	if len(chosen) == 0 {
		return nil, errors.New("no kind of fault is chosen")
	}
	return chosen, nil
}
