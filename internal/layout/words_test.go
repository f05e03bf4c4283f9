package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// avoidedWords are words that make a reader stop, with what to write instead.
var avoidedWords = []struct{ words, instead string }{
	{`meanwhile`, "when it happens"},
	{`besides`, "in addition to, beside"},
	{`nobody|somebody|anybody|whoever`, "the party: no node, an operator, the caller"},
	{`(go|goes|went) on`, "continue, take over"},
	{`any more`, "no longer"},
	{`for so long`, "for that time"},
	{`of (its|their|his|your|our) own`, "its own, separate"},
	{`by (itself|themselves)`, "automatically, on its own"},
	{`as it is`, "unchanged"},
	{`stand(s|ing)? for`, "represent, campaign for"},
	{`tell|tells|told|telling`, "report, notify, show, distinguish"},
	{`at once`, "immediately, at the same time"},
	{`news`, "notification"},
	{`just now`, "at the moment, or the time"},
	{`the (least|most) is`, "it must be at least, at most"},
}

// allowedWords are uses of those words that every reader understands, and names.
var allowedWords = regexp.MustCompile(`(?i)\bmany [a-z ]{0,40}at once\b|\baccount nobody\b|\{news\}`)

// avoided finds the avoided words. A phrase can be spread over two lines.
var avoided = func() (found []*regexp.Regexp) {
	for _, a := range avoidedWords {
		found = append(found, regexp.MustCompile(`(?i)\b(?:`+strings.ReplaceAll(a.words, " ", `\s+`)+`)\b`))
	}
	return found
}()

// prose is text that people read, and the line where it begins.
type prose struct {
	line int
	text string
}

// faults lists the avoided words in the prose, outside of code.
func (p prose) faults(file string) []string {
	text := blank(allowedWords, blank(codeSpan, blank(codeBlock, p.text)))
	var found []string
	for i, pattern := range avoided {
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			line := p.line + strings.Count(text[:at[0]], "\n")
			found = append(found, fmt.Sprintf("%s:%d: %q: write %s", file, line, text[at[0]:at[1]], avoidedWords[i].instead))
		}
	}
	return found
}

// blank removes what a pattern matches, except line ends.
func blank(pattern *regexp.Regexp, text string) string {
	return pattern.ReplaceAllStringFunc(text, func(match string) string {
		return strings.Repeat("\n", strings.Count(match, "\n"))
	})
}

// proseOf returns the comments of a Go file, and its literals of several words.
func proseOf(t *testing.T, code string) []prose {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var found []prose
	for _, comment := range file.Comments {
		found = append(found, prose{files.Position(comment.Pos()).Line, comment.Text()})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if isMutation(n) {
			return false
		}
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && strings.Contains(literal.Value, " ") {
			text := strings.ReplaceAll(literal.Value[1:len(literal.Value)-1], `\n`, "  ")
			found = append(found, prose{files.Position(literal.Pos()).Line, text})
		}
		return true
	})
	return found
}

// scriptProse matches the comments and the texts of files in other languages, by extension.
var scriptProse = map[string]*regexp.Regexp{
	".js":   regexp.MustCompile(`(?s)//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|` + "`(?:\\\\.|[^`\\\\])*`"),
	".sql":  regexp.MustCompile(`(?s)--[^\n]*(?:\n[ \t]*--[^\n]*)*|/\*.*?\*/|'(?:''|[^'])*'`),
	".css":  regexp.MustCompile(`(?s)/\*.*?\*/`),
	".html": regexp.MustCompile(`(?s).+`),
}

// commentedLine matches the beginning of a further line of comment.
var commentedLine = regexp.MustCompile(`\n[ \t]*(?://|--)`)

// proseOfScript returns the comments of a file, and its texts of several words.
func proseOfScript(code string, pattern *regexp.Regexp) []prose {
	var found []prose
	for _, at := range pattern.FindAllStringIndex(code, -1) {
		text := code[at[0]:at[1]]
		if strings.ContainsAny(text[:1], "\"'`") {
			text = text[1 : len(text)-1]
			if !strings.Contains(text, " ") {
				continue
			}
		}
		found = append(found, prose{1 + strings.Count(code[:at[0]], "\n"), commentedLine.ReplaceAllString(text, "\n")})
	}
	return found
}

// isMutation reports whether a node is code that a mutant replaces or inserts.
func isMutation(n ast.Node) bool {
	pair, ok := n.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := pair.Key.(*ast.Ident)
	return ok && (key.Name == "from" || key.Name == "to")
}

func TestTextsAvoidListedWords(t *testing.T) {
	var found []string
	for name, page := range readPages(t) {
		found = append(found, prose{1, page}.faults(name)...)
	}
	read := 0
	for _, s := range readSources(t) {
		name := filepath.Join(s.folder, s.name)
		if s.name == "words_test.go" { // it contains the words
			continue
		}
		for _, p := range proseOf(t, readPage(t, name)) {
			read++
			found = append(found, p.faults(name)...)
		}
	}
	if read < 10_000 {
		t.Fatalf("only %d comments and literals of Go were found: the test looks in the wrong place", read)
	}
	for extension, pattern := range scriptProse {
		read := 0
		walk(t, extension, func(path string) error {
			code, err := os.ReadFile(path)
			for _, p := range proseOfScript(string(code), pattern) {
				read++
				found = append(found, p.faults(path)...)
			}
			return err
		})
		if read == 0 {
			t.Errorf("no comment or text was found in files that end in %s: the test looks in the wrong place", extension)
		}
	}
	slices.Sort(found)
	for _, fault := range found {
		t.Error(fault)
	}
}

func TestAvoidedWordsAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		page string
		want string // empty if there is no fault
	}{
		"word":                   {"a\n\nb, meanwhile\n", `a.md:3: "meanwhile": write when it happens`},
		"first word":             {"Nobody leads.", `a.md:1: "Nobody": write the party: no node, an operator, the caller`},
		"phrase on two lines":    {"it goes\non", "a.md:1: \"goes\\non\": write continue, take over"},
		"part of a word":         {"newsletter, ongoing, foretold", ""},
		"code":                   {"the table `…news`\n\n```sh\ntell it\n```\n", ""},
		"after code":             {"```sh\nx\n```\n\nnews\n", `a.md:5: "news": write notification`},
		"allowed phrase":         {"many roles at once", ""},
		"phrase like it":         {"Many roles. It stops at once", `a.md:1: "at once": write immediately, at the same time`},
		"placeholder of a table": {"SELECT version FROM {news}", ""},
	} {
		got := strings.Join(prose{1, test.page}.faults("a.md"), "; ")
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	for name, test := range map[string]struct {
		code string
		want string
	}{
		"comment":            {"// It goes\n// on.\n", "\"goes\\non\""},
		"comment in a block": {"/* as it is */\n", `"as it is"`},
		"literal":            {"var a = \"one\\ntold twice\"\n", `"told"`},
		"raw literal":        {"var a = `one\n told`\n", `"told"`},
		"name":               {"var told = \"told\"\n", ""},
		"code of a mutant":   {"var a = b{from: \"if told {\", to: \"if told || c {\"}\n", ""},
		"name of a mutant":   {"var a = b{name: \"is told\", from: \"if told {\"}\n", `"told"`},
		"directive":          {"//go:generate tell it\n", ""},
	} {
		var found []string
		for _, p := range proseOf(t, "package a\n\n"+test.code) {
			found = append(found, p.faults("a.go")...)
		}
		if got := strings.Join(found, "; "); !strings.Contains(got, test.want) || (test.want == "") != (got == "") || len(found) > 1 {
			t.Errorf("%s: got %q, want one fault %q", name, got, test.want)
		}
	}
	for name, test := range map[string]struct {
		extension, code string
		want            string
	}{
		"comment in JavaScript":          {".js", "x = 1;\n// It goes\n  // on.\n", `a:2: "goes\non": write continue, take over`},
		"block of comment in JavaScript": {".js", "/* one\n told */", `a:2: "told": write report, notify, show, distinguish`},
		"text in JavaScript":             {".js", "x = \"it's told\"", `a:1: "told": write report, notify, show, distinguish`},
		"template in JavaScript":         {".js", "x = `was\n${a()} told`", `a:2: "told": write report, notify, show, distinguish`},
		"name in JavaScript":             {".js", "told('told')", ""},
		"comment in SQL":                 {".sql", "SELECT told;\n-- any\n-- more\n", `a:2: "any\n more": write no longer`},
		"text in SQL":                    {".sql", "RAISE EXCEPTION 'it was ''told'' twice'", `a:1: "told": write report, notify, show, distinguish`},
		"comment in a style sheet":       {".css", "a { b: c }\n/* as it is */", `a:2: "as it is": write unchanged`},
		"text of a page":                 {".html", "<p>\nmeanwhile</p>", `a:2: "meanwhile": write when it happens`},
	} {
		var found []string
		for _, p := range proseOfScript(test.code, scriptProse[test.extension]) {
			found = append(found, p.faults("a")...)
		}
		if got := strings.Join(found, "; "); strings.ReplaceAll(got, `\n `, `\n`) != strings.ReplaceAll(test.want, `\n `, `\n`) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
