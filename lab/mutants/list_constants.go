package main

import (
	"cmp"
	"strings"

	"github.com/exactly-one/tenure/internal/promises"
)

// constantMutants multiply each constant that a page states by ten.
var constantMutants = breakConstants(promises.Constants)

// assertion is the text of a failure of a test that holds the literal of a constant. Any
// assertion of such a test will do, but no panic.
const assertion = "_test.go:"

func breakConstants(constants []promises.Constant) []mutant {
	var all []mutant
	for _, c := range constants {
		broken, err := c.Broken()
		if err != nil {
			broken = c.From // mutate reports an entry that changes nothing
		}
		m := mutant{
			name: c.Name(), file: c.File, from: c.From, to: broken, says: cmp.Or(c.Says, assertion),
			promise: c.In[0].Page + " states: " + strings.Join(strings.Fields(c.In[0].Text), " "),
		}
		for _, t := range c.Tests {
			m.tests = append(m.tests, tests{t.Module, t.Folder, t.Run, ""})
		}
		all = append(all, m)
	}
	return all
}
