// Package preference compares nodes by how much they are preferred as the leader of a
// role.
package preference

import (
	"cmp"
	"fmt"
	"strconv"
)

// Label is the reserved label of a node's priority.
const Label = "tenure.priority"

// Priority returns the priority of a node with these labels: 0 without the label.
func Priority(labels map[string]string) (int, error) {
	text, given := labels[Label]
	if !given {
		return 0, nil
	}
	priority, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the label %s is %q; it must be an integer from -2147483648 to 2147483647", Label, text)
	}
	return int(priority), nil
}

// Score is how much a node is preferred. The priority decides first.
type Score struct {
	Priority int
	Matches  int // how many of the preferred labels the node has
}

// Of returns the score of a node with these labels. A priority other than an integer
// counts as 0.
func Of(labels, prefers map[string]string) Score {
	priority, _ := Priority(labels)
	score := Score{Priority: priority}
	for name, value := range prefers {
		if had, ok := labels[name]; ok && had == value {
			score.Matches++
		}
	}
	return score
}

// Compare returns a negative number if s is less than other, 0 if they are equal, and a
// positive number otherwise.
func (s Score) Compare(other Score) int {
	return cmp.Or(cmp.Compare(s.Priority, other.Priority), cmp.Compare(s.Matches, other.Matches))
}
