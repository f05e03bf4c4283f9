package kubernetes_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/exactly-one/tenure"
	tenurekubernetes "github.com/exactly-one/tenure/adapters/kubernetes"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

const childVariable = "TENURE_KUBERNETES_TEST"

// runChild is a process with one elector. It ends with its standard input.
func runChild(dsn string) {
	ctx, cancel := context.WithCancel(context.Background())
	var leads atomic.Bool
	go children.Watch(0, children.Leads(leads.Load))
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		}
	}()
	if err := electChild(ctx, dsn, &leads); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func electChild(ctx context.Context, dsn string, leads *atomic.Bool) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = node.Close(context.WithoutCancel(ctx)) }()
	lock, err := tenurekubernetes.New(node, tenure.NamedRole(role), config)
	if err != nil {
		return err
	}
	work := lock.Lead(func(ctx context.Context, _ *tenure.Term) {
		leads.Store(true)
		defer leads.Store(false)
		<-ctx.Done()
	})
	for ctx.Err() == nil {
		leaderelection.RunOrDie(lock.Context(ctx), electorConfig(lock, work))
	}
	return nil
}

// TestKilledElectorIsReplaced: when the leader's process is killed, an elector of another
// process leads.
func TestKilledElectorIsReplaced(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	var all []*children.Child
	start := func() {
		c, err := children.Start(children.Options{Name: fmt.Sprint("process ", len(all)), Env: []string{childVariable + "=" + dsn}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Kill)
		all = append(all, c)
	}
	for range 3 {
		start()
	}
	for range 4 {
		leader := awaitLeader(t, all)
		began := time.Now()
		leader.Kill()
		awaitLeader(t, all)
		t.Logf("a standby led %v after the kill", time.Since(began))
		start()
	}
	for i, one := range all {
		for _, other := range all[:i] {
			for _, both := range children.Overlaps(one.Leads(), other.Leads()) {
				t.Errorf("%s and %s led together for %v", one.Name, other.Name, both.Length())
			}
		}
	}
}

func awaitLeader(t *testing.T, all []*children.Child) (leader *children.Child) {
	t.Helper()
	err := children.Until(t.Context(), 30*time.Second, 5*time.Millisecond, func() error {
		for _, c := range all {
			if c.Leading() {
				leader = c
				return nil
			}
		}
		return fmt.Errorf("no process leads")
	})
	if err != nil {
		t.Fatal(err)
	}
	return leader
}
