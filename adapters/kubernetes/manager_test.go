package kubernetes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/exactly-one/tenure"
)

// TestManagersElectOnPostgreSQL: a runnable of controller-runtime's managers starts on
// the leader only, also when the leader's session ends or its manager stops.
func TestManagersElectOnPostgreSQL(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.NotFoundHandler()) // managers without controllers ask for nothing
	t.Cleanup(api.Close)
	f := newFleet(t, 2, func(c *candidate, ctx context.Context) error {
		m, err := c.manager(&rest.Config{Host: api.URL})
		if err != nil {
			return err
		}
		return m.Start(ctx)
	})
	for i := range 4 {
		leader := f.leader(0)
		before := f.terms.Load()
		if i%2 == 0 {
			f.terminate()
		} else {
			leader.stop()
		}
		f.leader(before)
	}
	f.check()
}

func (c *candidate) manager(api *rest.Config) (manager.Manager, error) {
	lease := time.Second
	m, err := manager.New(api, manager.Options{
		LeaderElection: true, LeaderElectionResourceLockInterface: c.lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lease, RenewDeadline: &config.RenewDeadline, RetryPeriod: &config.RetryPeriod,
		Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		return nil, err
	}
	return m, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		c.lock.Lead(c.work)(ctx)
		return nil
	}))
}

// TestManagerStopsWithTheTerm: the manager's context ends with the term.
func TestManagerStopsWithTheTerm(t *testing.T) {
	t.Parallel()
	causes := make(chan error, 16)
	api := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(api.Close)
	f := newFleet(t, 1, func(c *candidate, ctx context.Context) error {
		m, err := c.manager(&rest.Config{Host: api.URL})
		if err != nil {
			return err
		}
		err = m.Start(ctx)
		causes <- context.Cause(ctx)
		return err
	})
	f.leader(0)
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: role, By: "operator"}
	if err := f.Backend.Request(f.Context(), request); err != nil {
		f.Fatal(err)
	}
	if cause := <-causes; !errors.Is(cause, tenure.ErrTermEnded) {
		t.Errorf("the manager stopped with %v; want ErrTermEnded", cause)
	}
}
