package alerts

import (
	"fmt"
	"strings"
	texttemplate "text/template"
	tree "text/template/parse"
)

// The bounds on a template. Its expansion cannot be interrupted, and any user
// who can write the rules in the database chooses its text.
const (
	maxTemplate = 8 << 10  // bytes
	maxPrinted  = 64 << 10 // bytes that one function prints
	maxCounted  = 1000     // what a range may count to
)

// boundedFunctions can make a long text of a short one.
var boundedFunctions = texttemplate.FuncMap{
	"printf":  func(format string, args ...any) (string, error) { return boundedText(fmt.Sprintf(format, args...)) },
	"print":   func(args ...any) (string, error) { return boundedText(fmt.Sprint(args...)) },
	"println": func(args ...any) (string, error) { return boundedText(fmt.Sprintln(args...)) },
}

func boundedText(text string) (string, error) {
	if len(text) > maxPrinted {
		return "", fmt.Errorf("a function prints %d bytes; the limit is %d", len(text), maxPrinted)
	}
	return text, nil
}

// checkTemplateBounds refuses a template with a possibly long expansion: with calls of
// templates, with a range within a range, or with a far count.
func checkTemplateBounds(text string) error {
	if len(text) > maxTemplate {
		return fmt.Errorf("the template has %d bytes; the limit is %d", len(text), maxTemplate)
	}
	if !strings.Contains(text, "{{") {
		return nil
	}
	all := map[string]*tree.Tree{}
	parsed := tree.New("template")
	parsed.Mode = tree.SkipFuncCheck
	if _, err := parsed.Parse(definitions+text, "", "", all); err != nil {
		return nil //nolint:nilerr // the expansion reports the error
	}
	if len(all) > 1 {
		return fmt.Errorf("the template defines others, which it must not")
	}
	return checkList(parsed.Root, 0)
}

// checkList checks nodes within a number of ranges.
func checkList(list *tree.ListNode, ranges int) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		var err error
		switch n := node.(type) {
		case *tree.TemplateNode:
			err = fmt.Errorf("the template calls another one, which it must not")
		case *tree.IfNode:
			err = checkBranches(&n.BranchNode, ranges)
		case *tree.WithNode:
			err = checkBranches(&n.BranchNode, ranges)
		case *tree.RangeNode:
			switch {
			case ranges > 0:
				err = fmt.Errorf("the template has a range within a range, which it must not")
			case countsFar(n.Pipe):
				err = fmt.Errorf("a range of the template counts to more than %d", maxCounted)
			default:
				err = checkBranches(&n.BranchNode, ranges+1)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkBranches(n *tree.BranchNode, ranges int) error {
	if err := checkList(n.List, ranges); err != nil {
		return err
	}
	return checkList(n.ElseList, ranges)
}

// countsFar reports whether an expression has a large number in it.
func countsFar(node tree.Node) bool {
	switch n := node.(type) {
	case *tree.PipeNode:
		for _, command := range n.Cmds {
			for _, argument := range command.Args {
				if countsFar(argument) {
					return true
				}
			}
		}
	case *tree.NumberNode:
		return !n.IsInt || n.Int64 > maxCounted
	}
	return false
}
