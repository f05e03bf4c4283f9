package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exactly-one/tenure"
	tenurekubernetes "github.com/exactly-one/tenure/adapters/kubernetes"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

const podVariable = "TENURE_KUBERNETES_TEST_POD"

// podProcess is the configuration of a process that is a pod with a labeler. It runs
// until it is killed.
type podProcess struct{ DSN, API, Name string }

func runPod(given string) {
	var p podProcess
	err := json.Unmarshal([]byte(given), &p)
	if err == nil {
		err = p.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (p podProcess) run(ctx context.Context) error {
	db, err := postgres.New(p.DSN, postgres.Config{})
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, db, tenure.Config{Name: p.Name})
	if err != nil {
		return err
	}
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: p.API, QPS: -1})
	if err != nil {
		return err
	}
	labeler, err := tenurekubernetes.NewLabeler(election, tenurekubernetes.LabelConfig{
		Pods: clients.CoreV1().Pods(metav1.NamespaceDefault), Pod: p.Name, Selector: "app=billing", ResyncInterval: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if err := election.Start(ctx); err != nil {
		return err
	}
	go children.Watch(0, children.Leads(election.IsLeader))
	return errors.Join(labeler.Run(ctx), errors.New("the labeler has ended"))
}

// TestLabelFollowsKilledLeader: when the process of the leader is killed, the label
// moves to the pod of the next leader and stays on no other.
func TestLabelFollowsKilledLeader(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	names := []string{"pod-0", "pod-1", "pod-2", "pod-3", "pod-4"}
	api := newAPI(t, names...)
	var all []*children.Child
	for _, name := range names {
		given, err := json.Marshal(podProcess{dsn, api.URL, name})
		if err != nil {
			t.Fatal(err)
		}
		c, err := children.Start(children.Options{Name: name, Env: []string{podVariable + "=" + string(given)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Kill)
		all = append(all, c)
	}
	for len(all) > 1 {
		leader := awaitLeader(t, all)
		awaitLabels(t, api, leader.Name)
		leader.Kill()
		all = slices.DeleteFunc(all, func(c *children.Child) bool { return c == leader })
	}
	awaitLabels(t, api, awaitLeader(t, all).Name)
}

// awaitLabels waits until a pod has the label and no other one has it.
func awaitLabels(t *testing.T, api *api, want string) {
	t.Helper()
	err := children.Until(t.Context(), 30*time.Second, 5*time.Millisecond, func() error {
		if got := api.labeled(); !slices.Equal(got, []string{want}) {
			return fmt.Errorf("the label is on %v, want it on %s", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
