package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
)

var (
	// shellToken is a word with quoted parts, an operator, or a comment.
	shellToken = regexp.MustCompile(`(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;|&<>()'"\\])+|\n|[;|&<>()]`)
	shellNote  = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	// synopsis is the usage line of a command in the reference.
	synopsis   = regexp.MustCompile(`^tenure [^\n]*\[flags\]\n*$`)
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// separators are words between two commands.
var separators = []string{"\n", ";", "|", "&", "(", ")"}

// beforeCommands are words after which a command follows.
var beforeCommands = []string{"$", "sudo", "exec", "do", "then", "else", "if", "while", "until", "!", "{", "time", "nohup"}

// tenureCommands lists the arguments of each use of the program in a block of shell.
func tenureCommands(block string) [][]string {
	block = shellNote.ReplaceAllString(strings.ReplaceAll(block, "\\\n", " "), "$1")
	var found [][]string
	var current []string
	begins, ours := true, false
	end := func() {
		if ours {
			found = append(found, current)
		}
		begins, ours, current = true, false, nil
	}
	for _, word := range shellToken.FindAllString(block, -1) {
		switch {
		case slices.Contains(separators, word):
			end()
		case begins && (slices.Contains(beforeCommands, word) || assignment.MatchString(word)):
		case begins:
			begins, ours = false, path.Base(word) == "tenure"
		case ours:
			current = append(current, strings.NewReplacer("'", "", `"`, "").Replace(word))
		}
	}
	end()
	return found
}

// commandFault returns why the program would reject a command, as far as its names and
// its flags show; nil if it would not.
func commandFault(args []string) error {
	if i := slices.IndexFunc(args, func(arg string) bool { return arg == "<" || arg == ">" }); i >= 0 {
		args = args[:i]
	}
	cmd, rest, err := wholeTree().Find(args)
	if err != nil {
		return err
	}
	if !cmd.HasParent() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("unknown command %q", rest[0])
	}
	cmd.InitDefaultHelpFlag()
	for i, arg := range rest { // what a reader replaces has no value to parse
		if strings.HasSuffix(arg, "…") || strings.HasSuffix(arg, "...") {
			rest = slices.Delete(slices.Clone(rest), i, i+1)
			break
		}
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if names := cmd.Flags().Args(); cmd.HasSubCommands() && cmd.HasParent() && len(names) > 0 {
		return fmt.Errorf("unknown command %q of %q", names[0], cmd.CommandPath())
	}
	return nil
}

// Each use of the program in a block of shell has a known command and known flags.
func TestDocumentedCommandsParse(t *testing.T) {
	t.Parallel()
	const root = "../../../.."
	checked := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "tmp", "testdata", "node_modules"}, entry.Name()) {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".md" || name == "CHANGELOG.md" {
			return nil
		}
		page, err := os.ReadFile(root + "/" + name)
		if err != nil {
			return err
		}
		blocks := docpage.Blocks(string(page))
		for _, block := range docpage.Indented(string(page)) {
			if !synopsis.MatchString(block.Text) {
				block.Language = "sh"
				blocks = append(blocks, block)
			}
		}
		for _, block := range blocks {
			text := block.Text
			switch block.Language {
			case "console":
				text = onlyPrompts(text)
			case "sh", "bash", "shell":
			default:
				continue
			}
			for _, args := range tenureCommands(text) {
				checked++
				if err := commandFault(args); err != nil {
					t.Errorf("%s:%d: tenure %s: %v", name, block.Line, strings.Join(args, " "), err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 150 {
		t.Errorf("only %d commands were found: the test looks in the wrong place", checked)
	}
}

// adviseCommand is a use of the program in the advice of an alert.
var adviseCommand = regexp.MustCompile(`\btenure ((?:[a-z -]|\{\{[^}]*\}\})+)`)

// templateAction is what a template replaces with a value.
var templateAction = regexp.MustCompile(`\{\{[^}]*\}\}`)

// Each command that the rules for Prometheus advise exists.
func TestAdvisedCommandsParse(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../../../deploy/prometheus/tenure.yaml")
	if err != nil {
		t.Fatal(err)
	}
	advised := adviseCommand.FindAllStringSubmatch(string(rules), -1)
	if len(advised) < 2 {
		t.Errorf("%d commands were found: the test looks in the wrong place", len(advised))
	}
	for _, command := range advised {
		if err := commandFault(strings.Fields(templateAction.ReplaceAllString(command[1], "x"))); err != nil {
			t.Errorf("tenure %s: %v", command[1], err)
		}
	}
}

// onlyPrompts keeps the lines that a user types.
func onlyPrompts(text string) string {
	var typed strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
			typed.WriteString(rest + "\n")
		}
	}
	return typed.String()
}

func TestFaultyCommandsAreFound(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]string{
		"tenure status\n": "",
		"DSN=x sudo tenure run --role a -- ./x --strange\n":  "",
		"tenure status | grep 'tenure no'; echo tenure no\n": "",
		"tenure run --role a \\\n  --strange -- x\n":         "--strange",
		"tenure migrate print > tenure.sql # tenure no\n":    "",
		"x && bin/tenure no\n":                               "no",
		"echo $(tenure no)\n":                                "no",
		"tenure cron no\n":                                   "no",
		"tenure status --lines 3\n":                          "--lines",
		"tenure cron next --expr '30 2 * * *' -n 5\n":        "",
		"tenure cron next --expr '30 2 * * *' -n five\n":     "five",
	} {
		var fault error
		for _, args := range tenureCommands(block) {
			if err := commandFault(args); err != nil {
				fault = err
			}
		}
		if (fault == nil) != (want == "") || fault != nil && !strings.Contains(fault.Error(), want) {
			t.Errorf("%q: got %v, want %q", block, fault, want)
		}
	}
}
