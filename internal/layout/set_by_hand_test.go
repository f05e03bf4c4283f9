package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setByHand begins the comment that a write needs which brings about by hand what a user
// would wait for.
const setByHand = "// Set by hand: "

var (
	// A change of a table of Tenure's, in the forms in which tests name it: {nodes},
	// tenure_nodes, and a name that is appended.
	protocolWrite = regexp.MustCompile(`(?i)\b(UPDATE|INSERT INTO|DELETE FROM|TRUNCATE)\s+(\{(\w+)\}|"?\w*"?\.?tenure_\w+)`)
	writeOfName   = regexp.MustCompile(`(?i)\b(UPDATE|INSERT INTO|DELETE FROM|TRUNCATE) "$`)

	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
	overTime = regexp.MustCompile(`Grow|Expire|After[A-Z0-9]|Over[A-Z][a-z]+s\b|Old[A-Z][a-z]+Are|Delays|StartsWithADay`) // in the names of tests of what time brings about
)

// writesByHand lists the statements of a declaration that write a table of Tenure's or an
// unexported time of the tested package, without a comment that says why: in the lines
// before the statement, at its end, or above the declaration.
func (s *testSource) writesByHand(folder string, d declaration) []string {
	explained := map[int]bool{} // lines that follow such a comment
	whole := false
	for _, group := range d.file.Comments {
		if !strings.Contains(commentText(group), setByHand) {
			continue
		}
		first, last := s.files.Position(group.Pos()).Line, s.files.Position(group.End()).Line
		for line := first; line <= last+1; line++ {
			explained[line] = true
		}
		if function, ok := d.node.(*ast.FuncDecl); ok && function.Doc == group {
			whole = true
		}
	}
	var found []string
	report := func(n ast.Node, what string) {
		at := s.files.Position(n.Pos())
		if !whole && !explained[at.Line] {
			found = append(found, fmt.Sprintf("%s:%d: %s", strings.TrimPrefix(at.Filename, root+"/"), at.Line, what))
		}
	}
	ast.Inspect(d.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			for _, write := range protocolWrite.FindAllStringSubmatch(n.Value, -1) {
				if write[3] != "schema" { // a table of the test in the schema
					report(n, write[0])
				}
			}
		case *ast.BinaryExpr:
			text, _ := n.X.(*ast.BasicLit)
			call, _ := n.Y.(*ast.CallExpr)
			if text != nil && call != nil && writeOfName.MatchString(text.Value) && strings.HasSuffix(fmt.Sprint(call.Fun), "quoted}") {
				report(n, text.Value)
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok && d.internal && s.fields[folder+"."+field.Sel.Name] {
					report(n, "the field "+field.Sel.Name)
				}
			}
		}
		return true
	})
	return found
}

func commentText(group *ast.CommentGroup) string {
	var text strings.Builder
	for _, comment := range group.List {
		text.WriteString(comment.Text + "\n")
	}
	return text.String()
}

// TestNamedTestsSetNothingByHand: a test that a document names does what the sentence
// says, or lets it happen, and so does a test of something that grows or expires. Neither
// it nor a helper in its folder writes rows of Tenure or private times to reach the state
// that it then finds, or a comment says why.
func TestNamedTestsSetNothingByHand(t *testing.T) {
	s := testsOf(t)
	named := map[string]string{}
	for page, text := range readPages(t) {
		if strings.HasPrefix(page, "docs/") {
			for _, name := range testName.FindAllString(text, -1) {
				named[name] = page
			}
		}
	}
	if len(named) < 150 {
		t.Fatalf("the documents name only %d tests: the test looks in the wrong place", len(named))
	}
	for name := range s.tests {
		if named[name] == "" && overTime.MatchString(name) {
			named[name] = "no document, but of what time brings about"
		}
	}
	found := map[string][]string{}
	for name, page := range named {
		for _, key := range s.tests[name] {
			folder := strings.TrimSuffix(key, "."+name)
			for helper := range s.leads(key) {
				for _, d := range s.declared[helper] {
					ofBenchmark := strings.HasSuffix(s.files.Position(d.node.Pos()).Filename, "_bench_test.go")
					if strings.HasPrefix(helper, folder+".") && !ofBenchmark {
						for _, write := range s.writesByHand(folder, d) {
							found[write] = append(found[write], fmt.Sprintf("%s (%s)", name, page))
						}
					}
				}
			}
		}
	}
	for _, write := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[write])
		t.Errorf("%s: reach the state as a user does, or give the reason after %q: %s", write, setByHand, strings.Join(found[write], ", "))
	}
}

// TestWritesByHandAreFound proves that the check can fail.
func TestWritesByHandAreFound(t *testing.T) {
	for body, want := range map[string]int{
		"exec(t, b, `UPDATE {nodes} SET status = 'dead'`)":                              1,
		"exec(t, b, \"DELETE FROM {nodes}\")":                                           1,
		"exec(t, b, \"ALTER TABLE {terms} DISABLE TRIGGER USER; DELETE FROM {terms}\")": 1,
		"exec(t, b, `UPDATE tenure_lease_news SET server = 'another'`)":                 1,
		"exec(t, b, \"INSERT INTO \"+c.quoted(\"terms\")+\" VALUES (1)\")":              1,
		"s.upAt = now":  1,
		"s.other = now": 0,
		"exec(t, b, `SELECT FROM {nodes} FOR UPDATE`)":                                       0,
		"exec(t, b, `INSERT INTO {schema}.work VALUES (1)`)":                                 0,
		"// Set by hand: a reason.\nexec(t, b, `UPDATE {nodes} SET status = 'dead'`)":        0,
		"exec(t, b, `UPDATE {nodes} SET status = 'dead'`) // Set by hand: a reason.":         0,
		"// A comment.\nexec(t, b, `UPDATE {nodes} SET status = 'dead'`)":                    1,
		"// Set by hand: a reason.\n_ = 1\nexec(t, b, `UPDATE {nodes} SET status = 'dead'`)": 1,
	} {
		for doc, explained := range map[string]bool{"// It tests.\n": false, "// It tests.\n// Set by hand: a reason.\n": true} {
			s := &testSource{files: token.NewFileSet(), fields: map[string]bool{"postgres.upAt": true}}
			file, err := parser.ParseFile(s.files, "x_test.go", "package postgres\n\n"+doc+"func f() {\n"+body+"\n}\n", parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			want := want
			if explained {
				want = 0
			}
			if got := s.writesByHand("postgres", declaration{file.Decls[0], file, true}); len(got) != want {
				t.Errorf("%s%s: got %q, want %d", doc, body, got, want)
			}
		}
	}
}
