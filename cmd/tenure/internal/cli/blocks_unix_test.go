//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// documents is the root of the repository.
const documents = "../../../.."

// shellBlock is a block of shell in the README or in a document.
type shellBlock struct {
	docpage.Block
	page string
}

func (b shellBlock) first() string {
	line, _, _ := strings.Cut(strings.TrimSpace(b.Text), "\n")
	return line
}

func (b shellBlock) place() string { return fmt.Sprintf("%s:%d", b.page, b.Line) }

// shellBlocks lists the blocks that a reader types: the fenced ones, of a session what
// follows the prompt, and the indented ones.
func shellBlocks(t *testing.T) []shellBlock {
	t.Helper()
	var found []shellBlock
	add := func(name string) {
		page, err := os.ReadFile(filepath.Join(documents, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range docpage.Blocks(string(page)) {
			switch block.Language {
			case "console":
				block.Text = onlyPrompts(block.Text)
			case "sh", "bash", "shell":
			default:
				continue
			}
			found = append(found, shellBlock{block, name})
		}
		for _, block := range docpage.Indented(string(page)) {
			if !synopsis.MatchString(block.Text) {
				found = append(found, shellBlock{block, name})
			}
		}
	}
	add("README.md")
	err := fs.WalkDir(os.DirFS(documents), "docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			add(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDocumentedBlocksRun runs every block of shell that can run here, each on a separate
// installation. A block that needs more than what every block gets, or that cannot run, has
// a plan.
func TestDocumentedBlocksRun(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	blocks := shellBlocks(t)
	if len(blocks) < 80 {
		t.Fatalf("only %d blocks were found: the test looks in the wrong place", len(blocks))
	}
	used, ran := map[string]bool{}, map[string]bool{}
	for _, block := range blocks {
		key := strings.TrimSpace(block.Text)
		if _, found := plans[key]; !found {
			key = block.first()
		}
		p := plans[key]
		used[key] = true
		if p.skip != "" || ran[block.Text] {
			continue
		}
		ran[block.Text] = true
		t.Run(block.place(), func(t *testing.T) {
			t.Parallel()
			newStage(t, block.Text, p.bare).run(p, block.Text)
		})
	}
	for key := range plans {
		if !used[key] {
			t.Errorf("there is a plan for %q, but no block that begins so", key)
		}
	}
	t.Logf("%d of %d blocks run", len(ran), len(blocks))
}

// TestFaultyBlockFails: a block that fails, prints the wrong text, or does not end when it
// should is noticed.
func TestFaultyBlockFails(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	for text, test := range map[string]struct {
		plan plan
		want string // part of the fault; empty if there is none
	}{
		"tenure version\n":               {plan{}, ""},
		"tenure version; false\n":        {plan{}, "exit code 1"},
		"false\ntrue\n":                  {plan{}, "exit code 1"},
		"exit 3\n":                       {plan{code: 3}, ""},
		"true\n":                         {plan{code: 3}, "exit code 0, want 3"},
		"./program.sh --with argument\n": {plan{}, ""},
		"echo ready; exec sleep 1000\n":  {plan{until: "ready"}, "exit code -1"},
		"echo other\n":                   {plan{until: "ready"}, "ended before"},
		"trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done\n": {plan{until: "ready"}, ""},
	} {
		s := &stage{T: t, place: place, folder: t.TempDir()}
		s.prepare(text)
		err := s.try(test.plan, text)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", text, err, test.want)
		}
	}
}

// lineEnd is a command that asks, and its comment.
var lineEnd = regexp.MustCompile(`(?m)(^tenure (?:migrate|processor|role) .*?)(?:\s+#.*)?$`)

// command is a line with a single command.
var command = regexp.MustCompile(`^(?:tenure|curl) [^|&>\n]*\n$`)

// plan is how a block runs, or why it does not.
type plan struct {
	skip  string // the reason why it cannot run here
	setup string // runs before it
	bare  bool   // it gets no nodes, and tables without rows
	input string // its standard input
	code  int    // its exit code, -1 for the end by a signal
	// confirm answers yes to what its commands ask.
	confirm bool
	// until is a pattern of what each line prints before it is ended. Lines run one after another,
	// or beside each other, or are one script.
	until         string
	beside, whole bool
}

// stage is where a block runs: an empty folder with the programs and the files that the
// documents use as examples, and an installation.
type stage struct {
	*testing.T
	place        place
	folder       string
	replacements []string // as strings.NewReplacer takes them
}

// run fails the test unless a block runs as planned.
func (s *stage) run(p plan, text string) {
	s.Helper()
	if p.setup != "" && p.until == "" {
		text = p.setup + "\n" + text
	} else if p.setup != "" {
		if err := s.try(plan{}, p.setup+"\n"); err != nil {
			s.Fatalf("setup: %v", err)
		}
	}
	if err := s.try(p, text); err != nil {
		s.Errorf("%v: if it cannot run here, give it a plan with the reason", err)
	}
}

// adapt replaces what the documents take as an example by what this stage has.
func (s *stage) adapt(text string) string {
	return strings.NewReplacer(s.replacements...).Replace(text)
}

// try runs a block and returns how it departs from the plan.
func (s *stage) try(p plan, text string) error {
	text = s.adapt(text)
	if p.confirm {
		text = lineEnd.ReplaceAllString(text, "$1 --yes")
	}
	if p.until == "" {
		sh := s.start("set -e\n"+text, p.input)
		return sh.explain(sh.ends(p.code))
	}
	var begun []*shell
	lines := slices.Collect(strings.Lines(strings.ReplaceAll(text, "\\\n", " ")))
	if p.whole {
		lines = []string{text}
	}
	for _, line := range lines {
		if !p.whole && strings.HasPrefix(line, "#") {
			continue
		}
		text := line
		if command.MatchString(line) { // the shell would end before it
			text = "exec " + line
		}
		sh := s.start(text, p.input)
		if err := sh.await(p.until); err != nil {
			return sh.explain(err)
		}
		begun = append(begun, sh)
		end := sh.terminate
		switch {
		case p.beside && (!command.MatchString(line) || strings.HasPrefix(line, "curl -f ")): // it ends without a signal
			end = sh.ends
		case p.beside:
			continue
		}
		if err := end(p.code); err != nil {
			return sh.explain(err)
		}
	}
	for _, sh := range slices.Backward(begun) {
		if err := sh.terminate(p.code); err != nil {
			return sh.explain(err)
		}
	}
	return nil
}

// shell is a shell in a separate process group, as at a terminal.
type shell struct {
	text    string
	command *exec.Cmd
	done    chan struct{}
	err     error // once done is closed

	mu      sync.Mutex
	output  bytes.Buffer
	written chan struct{} // closed when there is more output
}

// start runs a text in a shell, which is killed with the test.
func (s *stage) start(text, input string) *shell {
	s.Helper()
	sh := &shell{text: text, done: make(chan struct{}), written: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), longPatience)
	sh.command = exec.CommandContext(ctx, "sh", "-c", text)
	sh.command.Dir = s.folder
	sh.command.Env = environment("PATH="+filepath.Join(s.folder, "bin")+":"+os.Getenv("PATH"), "HOME="+s.folder,
		"PG_DSN="+s.place.server.DSN(), "DATABASE_URL="+s.place.server.DSN(), "OWNER_DSN="+s.place.server.DSN(), "TENURE_SCHEMA="+s.place.schema)
	sh.command.Stdin = strings.NewReader(input)
	sh.command.Stdout, sh.command.Stderr = sh, sh
	sh.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	sh.command.Cancel = func() error { return sh.signal(syscall.SIGKILL) }
	sh.command.WaitDelay = patience
	if err := sh.command.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		defer close(sh.done)
		sh.err = sh.command.Wait()
	}()
	s.Cleanup(func() {
		cancel()
		<-sh.done
		_ = sh.signal(syscall.SIGKILL) // what the shell left in the background
	})
	return sh
}

func (sh *shell) signal(signal syscall.Signal) error {
	return syscall.Kill(-sh.command.Process.Pid, signal)
}

// Write receives the output.
func (sh *shell) Write(b []byte) (int, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	close(sh.written)
	sh.written = make(chan struct{})
	return sh.output.Write(b)
}

func (sh *shell) printed() (text string, more <-chan struct{}) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.output.String(), sh.written
}

// await waits until what the shell has printed matches a pattern.
func (sh *shell) await(pattern string) error {
	matches := regexp.MustCompile(pattern).MatchString
	for {
		printed, more := sh.printed()
		if matches(printed) {
			return nil
		}
		select {
		case <-more:
		case <-sh.done:
			if printed, _ := sh.printed(); matches(printed) {
				return nil
			}
			return fmt.Errorf("it ended before it printed %q: %w", pattern, sh.err)
		}
	}
}

// terminate ends the shell and what it runs, and waits until the shell has ended.
func (sh *shell) terminate(code int) error {
	_ = sh.signal(syscall.SIGTERM) // an error if it has ended
	return sh.ends(code)
}

// ends waits until the shell has ended, and returns an error unless it has this exit code, -1 after
// a signal.
func (sh *shell) ends(code int) error {
	<-sh.done
	if got := sh.command.ProcessState.ExitCode(); got != code {
		return fmt.Errorf("exit code %d, want %d: %w", got, code, sh.err)
	}
	return nil
}

// explain adds what ran and what it printed to an error.
func (sh *shell) explain(err error) error {
	if err == nil {
		return nil
	}
	printed, _ := sh.printed()
	return fmt.Errorf("%w\n$ %s\n%s\n(after at most %v)", err, sh.text, printed, longPatience)
}
