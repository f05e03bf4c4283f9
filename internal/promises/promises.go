// Package promises lists the numbers that the documents promise. Each entry names
// the constant in the code and the tests that hold its value. internal/layout
// compares the list with the pages. lab/mutants breaks each constant.
package promises

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Constant is a number in the code that documents state.
type Constant struct {
	In    []Place
	File  string // from the root of the repository
	From  string // the source text of the constant; occurs exactly once in the file
	Value string // the part of From to multiply; by default what follows the last "= "
	To    string // if set, replaces From; for a number that ten times means nothing
	Tests []Test // that fail if the number is another
	Says  string // if set, the failure must contain this text
}

// Place is a text on a page that contains the number, or several numbers, as they
// are written. It occurs exactly once on the page.
type Place struct{ Page, Text string }

// Test names tests of a package.
type Test struct {
	Module string // folder of the module, from the root of the repository
	Folder string // of the package, within the module
	Run    string // pattern of -test.run
}

// Name is unique among the constants, and one line.
func (c Constant) Name() string {
	page := c.In[0].Page[strings.LastIndex(c.In[0].Page, "/")+1:]
	return fmt.Sprintf("constant: %s: %s", strings.TrimSuffix(page, ".md"), strings.Join(strings.Fields(c.In[0].Text), " "))
}

var digits = regexp.MustCompile(`^[0-9][0-9_]*`)

// Broken returns From with ten times the value, or To if it is set.
func (c Constant) Broken() (string, error) {
	if c.To != "" {
		return c.To, nil
	}
	value := c.Value
	if value == "" {
		after := c.From[strings.LastIndex(c.From, "= ")+len("= "):]
		value, _, _ = strings.Cut(after, " //")
		value = strings.TrimSpace(value)
	}
	if n := strings.Count(c.From, value); n != 1 || value == "" {
		return "", fmt.Errorf("%s: the value %q occurs %d times in %q", c.Name(), value, n, c.From)
	}
	tenfold := "10*(" + value + ")"
	// A number of a text, such as an interval in SQL, gets a zero.
	if number := digits.FindString(value); number != "" && !strings.ContainsAny(value, "*.<") {
		tenfold = number + "0" + value[len(number):]
	}
	return strings.Replace(c.From, value, tenfold, 1), nil
}

// on is one place on a page, or several, as pairs of page and text.
func on(pairs ...string) []Place {
	var places []Place
	for pair := range slices.Chunk(pairs, 2) {
		places = append(places, Place{pair[0], pair[1]})
	}
	return places
}

// by names tests of one package in the root module.
func by(folder, run string) []Test { return []Test{{".", folder, run}} }

// byCommand names tests of one package in the module of the program on each machine.
func byCommand(folder, run string) []Test { return []Test{{"cmd/tenure", folder, run}} }

// byShared names tests of one package in the module that the programs share.
func byShared(folder, run string) []Test { return []Test{{"internal/program", folder, run}} }

// byServer names tests of one package in the server's module.
func byServer(folder, run string) []Test { return []Test{{"server", folder, run}} }

// byModule names tests of another module's root.
func byModule(module, run string) []Test { return []Test{{module, ".", run}} }
