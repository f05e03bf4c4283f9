package kubernetes_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/exactly-one/tenure"
	tenurekubernetes "github.com/exactly-one/tenure/adapters/kubernetes"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// The elector of client-go leads on the leader of the role "controller".
func ExampleLock() {
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	if err := runElector(context.Background(), dsn); err != nil {
		log.Fatal(err)
	}
	// Output: term of pod-1: true <nil>
}

func runElector(ctx context.Context, dsn string) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{Name: "pod-1", Lease: 15 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	lock, err := tenurekubernetes.New(node, tenure.NamedRole("controller"), tenurekubernetes.Config{})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx) // in a program: signal.NotifyContext
	defer stop()
	leaderelection.RunOrDie(lock.Context(ctx), leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lock.Lead(func(ctx context.Context, term *tenure.Term) {
				defer stop()
				fmt.Printf("term of %s: %v %v\n", node.Name(), term.Valid(), ctx.Err()) // in a program: postgres.InTx(ctx, pool, term, …)
			}),
			OnStoppedLeading: func() {},
		},
	})
	return nil
}

// The runnables and controllers of a manager run on the leader of the role
// "controller".
func ExampleLock_Context() {
	api := httptest.NewServer(http.NotFoundHandler()) // in a program: config.GetConfig
	defer api.Close()
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	if err := runManager(context.Background(), dsn, &rest.Config{Host: api.URL}); err != nil {
		log.Fatal(err)
	}
	// Output: term of pod-1: true <nil>
}

func runManager(ctx context.Context, dsn string, api *rest.Config) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{Name: "pod-1", Lease: 15 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	lock, err := tenurekubernetes.New(node, tenure.NamedRole("controller"), tenurekubernetes.Config{})
	if err != nil {
		return err
	}
	m, err := manager.New(api, manager.Options{
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		Metrics:                             server.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx) // in a program: ctrl.SetupSignalHandler
	defer stop()
	report := manager.RunnableFunc(func(ctx context.Context) error {
		defer stop()
		guard, err := lock.Guard()
		if err != nil {
			return err
		}
		defer guard.Done()
		fmt.Printf("term of %s: %v %v\n", node.Name(), guard.Term().Valid(), ctx.Err()) // in a program: postgres.InTx(ctx, pool, guard.Term(), …)
		return nil
	})
	if err := m.Add(report); err != nil {
		return err
	}
	return m.Start(lock.Context(ctx))
}

// The pod of the leader has the label tenure.dev/leads-billing.
func ExampleLabeler() {
	ctx, stop := context.WithCancel(context.Background())
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { // in a program: rest.InClusterConfig
		w.Header().Set("Content-Type", "application/json")
		change, _ := io.ReadAll(req.Body)
		if strings.Contains(string(change), `"true"`) {
			fmt.Println(req.URL.Path, string(change))
			stop()
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	defer api.Close()
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	if err := runLabeled(ctx, dsn, &rest.Config{Host: api.URL}); err != nil {
		log.Fatal(err)
	}
	// Output: /api/v1/namespaces/default/pods/pod-1 {"metadata":{"labels":{"tenure.dev/leads-billing":"true"}}}
}

func runLabeled(ctx context.Context, dsn string, api *rest.Config) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{Name: "pod-1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		return err
	}
	if err := election.Start(ctx); err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	labeler, err := tenurekubernetes.NewLabeler(election, tenurekubernetes.LabelConfig{
		Pods: clients.CoreV1().Pods("default"), Pod: "pod-1", // in a program: POD_NAMESPACE and POD_NAME
		Selector: "app.kubernetes.io/name=billing",
	})
	if err != nil {
		return err
	}
	return labeler.Run(ctx)
}
