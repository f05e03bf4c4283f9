package processor_test

import (
	"errors"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
)

// TestSecondRunDoesNotEndTheFirst: a second Run is refused, and Add still is, because the
// first Run reads the processors in every term.
func TestSecondRunDoesNotEndTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group, err := processor.NewGroup(w.Node("a", tenure.Config{}), tenure.NamedRole("views"), w.pool, processor.GroupConfig{})
	w.must(err)
	w.must(group.Add(processor.Config{Name: "counts", Log: w.store.Log(), Handle: w.fill}))
	postgrestest.Run(t, group.Run)
	w.Await("the start", func() bool { return w.exists("counts") })

	if err := group.Run(t.Context()); err == nil {
		t.Error("a second Run returned no error")
	}
	late := processor.Config{Name: "late", Log: w.store.Log(), Handle: w.fill}
	if err := group.Add(late); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("Add during the first Run: %v; want ErrInvalidConfig", err)
	}
}
