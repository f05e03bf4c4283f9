package fsm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notFed lists the inputs of the source's table that the engine never feeds, with the
// reason why they cannot occur in it. Every other input is fed somewhere.
//
// Of the others, DbError does not occur in Leader: a lost session is HealthFailed there,
// with the same rows in the table.
var notFed = map[Input]string{
	HealthOk: "One heartbeat proves the session of a node for all its elections. " +
		"The table has neither a transition nor an action for it, so an input for each election would be work without an effect.",
	ReleaseFailed: "After a release that fails, the session may still hold the lock, so the engine gives the session up. " +
		"The election gets DbError, for which the table has the same rows.",
}

// shared lists the actions not performed for one election: the node and its session
// perform them for all elections together. Each entry says where.
var shared = map[Action]string{
	CloseConnection: "Election.cleanUpLocked takes a stopped election out of the session, which other elections still use. A broken session is closed by session.endLocked.",
	Reconnect:       "Node.run opens the next session when one is lost.",
	ComputeBackoff:  "session.backOffLocked asks the retry strategies of all elections whose attempts failed together.",
	TryLock:         "session.acquire tries all roles that are due in one call.",
	Unlock:          "session.release frees roles in one call, each when the work under its term has returned.",
	BeginHealth:     "session.heartbeat vouches for every term of the session.",
}

// engineUses returns the names that the engine's source takes from this package: as
// arguments of calls, which feed inputs, and in the cases of a switch that do
// something, which perform actions.
func engineUses(t *testing.T) (fed, performed map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of the engine: %v", err)
	}
	fed, performed = map[string]bool{}, map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				note(fed, node.Args)
			case *ast.CaseClause:
				if len(node.Body) > 0 {
					note(performed, node.List)
				}
			}
			return true
		})
	}
	return fed, performed
}

// note adds the names of this package that are among the expressions.
func note(names map[string]bool, expressions []ast.Expr) {
	for _, expression := range expressions {
		selector, ok := expression.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "fsm" {
			names[selector.Sel.Name] = true
		}
	}
}

func TestEveryInputIsFedOrCannotOccur(t *testing.T) {
	fed, _ := engineUses(t)
	for _, input := range inputs() {
		reason, excluded := notFed[input]
		switch {
		case excluded && reason == "":
			t.Errorf("%s cannot occur, but the list gives no reason", input)
		case excluded && fed[input.String()]:
			t.Errorf("%s is fed by the engine, but the list says that it cannot occur", input)
		case !excluded && !fed[input.String()]:
			t.Errorf("%s is neither fed by the engine nor listed as an input that cannot occur", input)
		}
	}
}

// The list says of two inputs that another one takes their place. Then the table
// must not treat them differently.
func TestInputsThatReplaceOthersHaveTheSameRows(t *testing.T) {
	for _, pair := range []struct {
		from         State
		given, input Input
	}{{Releasing, DbError, ReleaseFailed}, {Leader, HealthFailed, DbError}} {
		for _, policy := range policies() {
			to, actions, ok := Step(pair.from, pair.given, policy)
			wantTo, wantActions, wantOK := Step(pair.from, pair.input, policy)
			if to != wantTo || ok != wantOK || !slices.Equal(actions, wantActions) {
				t.Errorf("%s × %s %+v: got %s, %v; want %s, %v as for %s",
					pair.from, pair.given, policy, to, actions, wantTo, wantActions, pair.input)
			}
		}
	}
}

func TestEveryActionIsPerformedOrShared(t *testing.T) {
	_, performed := engineUses(t)
	for action := range actionNames {
		name := actionNames[action]
		reason, isShared := shared[Action(action)]
		switch {
		case isShared && reason == "":
			t.Errorf("%s is shared, but the list does not say who performs it", name)
		case isShared && performed[name]:
			t.Errorf("%s is performed for each election, but the list says that it is shared", name)
		case !isShared && !performed[name]:
			t.Errorf("%s is neither performed by the engine nor listed as shared", name)
		}
	}
}
