package steplog_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/tenuretest"
)

// The history of a test has the steps of its nodes and of its children in their order, the
// death of a child right after its last step, and nothing from after its end.
func TestHistoryHasStepsOfAllProcesses(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TENURE_TEST_STEPS", folder)
	h, db := steplog.New(t), tenuretest.NewDatabase()
	open := func(ctx context.Context) *tenure.Node {
		t.Helper()
		node, err := tenure.Open(ctx, db, tenure.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	own := open(h.Of(t.Context()))
	env, died := h.Child()
	name, path, _ := strings.Cut(env[0], "=")
	t.Setenv(name, path)
	child := open(steplog.Recording(t.Context())) // as a child does, with its environment
	died()
	h.Excuse()()
	h.End()
	for _, node := range []*tenure.Node{own, child} {
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}

	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the histories are %q, %v; want one", files, err)
	}
	header, history := stored(t, files[0])
	if !header.Nodes || header.Blur != steplog.Blur {
		t.Errorf("the header is %+v", header)
	}
	if !slices.IsSortedFunc(history, func(a, b steps.Step) int { return int(a.At - b.At) }) {
		t.Error("the steps are not in their order")
	}
	of := func(node *tenure.Node) (kinds []steps.Kind) {
		for _, s := range history {
			if s.Node == node.ID().String() {
				kinds = append(kinds, s.Kind)
			}
		}
		return kinds
	}
	opened := []steps.Kind{steps.Opens, steps.SendsHeartbeat, steps.GetsAnswer}
	if got := of(own); !slices.Equal(got, opened) {
		t.Errorf("the steps of the node are %q; want %q", got, opened)
	}
	if got, want := of(child), slices.Concat(opened, []steps.Kind{steps.Dies}); !slices.Equal(got, want) {
		t.Errorf("the steps of the child are %q; want %q", got, want)
	}
}

func stored(t *testing.T, path string) (header steplog.Header, history []steps.Step) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for i := 0; lines.Scan(); i++ {
		var s steps.Step
		if i == 0 {
			err = json.Unmarshal(lines.Bytes(), &header)
		} else if err = json.Unmarshal(lines.Bytes(), &s); err == nil {
			history = append(history, s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return header, history
}
