package grpchealth_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // makes clients check the health of servers
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/grpchealth"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

const childVariable = "TENURE_GRPCHEALTH_TEST"

// writeMethod is the only method of the service of the child processes: it records the
// number that it gets.
const writeMethod = "/orders.Orders/Write"

// orders is the service of a child process.
type orders struct {
	election *tenure.Election
	pool     *pgxpool.Pool
}

// write records a call, with the term under which this process received it, or 0.
func (o *orders) write(ctx context.Context, number *wrapperspb.Int64Value) (*wrapperspb.Int64Value, error) {
	term := int64(0)
	if t := o.election.Term(); t != nil && t.Valid() {
		term = t.Number()
	}
	_, err := o.pool.Exec(ctx, `INSERT INTO received (number, process, term) VALUES ($1, $2, $3)`, number.GetValue(), os.Getpid(), term)
	return number, err
}

// service describes orders without generated code.
func (o *orders) service() *grpc.ServiceDesc {
	handle := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		number := new(wrapperspb.Int64Value)
		if err := decode(number); err != nil {
			return nil, err
		}
		return o.write(ctx, number)
	}
	return &grpc.ServiceDesc{ServiceName: "orders.Orders", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Write", Handler: handle}}}
}

// runChild is a process with a node and a server. It runs until it is killed.
func runChild(dsn string) {
	fmt.Fprintln(os.Stderr, serveChild(context.Background(), dsn))
	os.Exit(1)
}

func serveChild(ctx context.Context, dsn string) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, db, tenure.Config{Lease: patient})
	if err != nil {
		return err
	}
	election, err := node.Election(tenure.NamedRole(role))
	if err != nil {
		return err
	}
	health, err := grpchealth.New(election)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health)
	server.RegisterService((&orders{election, pool}).service(), nil)
	if err := election.Start(ctx); err != nil {
		return err
	}
	go children.Watch(0, children.Leads(election.IsLeader))
	children.Send(children.Report{Kind: "ready", Sequence: int64(listener.Addr().(*net.TCPAddr).Port)})
	return errors.Join(server.Serve(listener), errors.New("the server has ended"))
}

// startServers starts child processes, and returns them with a client of all of them
// that sends calls to those which serve the role.
func startServers(t *testing.T, dsn string, n int) ([]*children.Child, *grpc.ClientConn) {
	t.Helper()
	var all []*children.Child
	var state resolver.State
	for i := range n {
		c, err := children.Start(children.Options{Name: fmt.Sprint("server ", i), Env: []string{childVariable + "=" + dsn}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Kill)
		ready, err := c.Await(t.Context(), "ready", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		state.Addresses = append(state.Addresses, resolver.Address{Addr: fmt.Sprintf("127.0.0.1:%d", ready.Sequence)})
	}
	addresses := manual.NewBuilderWithScheme("orders")
	addresses.InitialState(state)
	client, err := grpc.NewClient("orders:///orders", grpc.WithResolvers(addresses), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": "`+role+`"}}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return all, client
}

// The leader of three servers is killed twice under load. No call reaches a server that
// does not lead, none reaches a server twice, and each caller loses at most the call that
// was in flight.
func TestKilledLeaderLosesAtMostCallsInFlight(t *testing.T) {
	t.Parallel()
	const callers, kills = 8, 2
	dsn := pgtest.Shared(t).Database(t)
	db := pgtest.Pool(t, dsn)
	if _, err := db.Exec(t.Context(), `CREATE TABLE received (number bigint, process int, term bigint)`); err != nil {
		t.Fatal(err)
	}
	servers, client := startServers(t, dsn, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var (
		load    sync.WaitGroup
		numbers atomic.Int64
		success atomic.Int64
		lost    [callers]int
	)
	for i := range callers {
		load.Go(func() { // exits when ctx ends; the test waits
			for ctx.Err() == nil {
				number := wrapperspb.Int64(numbers.Add(1))
				limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
				err := client.Invoke(limited, writeMethod, number, new(wrapperspb.Int64Value), grpc.WaitForReady(true))
				cancel()
				switch status.Code(err) {
				case codes.OK:
					success.Add(1)
				case codes.Unavailable:
					lost[i]++
				default:
					t.Errorf("call %d: %v, want success, or Unavailable for a call in flight", number.GetValue(), err)
					return
				}
			}
		})
	}
	more := func() {
		t.Helper()
		want := success.Load() + 200
		err := children.Until(t.Context(), time.Minute, 5*time.Millisecond, func() error {
			if got := success.Load(); got < want {
				return fmt.Errorf("%d calls have succeeded, want %d", got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range kills {
		more()
		for _, server := range servers {
			if server.Leading() {
				server.Kill()
				break // the next server can lead at this moment
			}
		}
		more()
	}
	stop()
	load.Wait()
	for i, n := range lost {
		if n > kills {
			t.Errorf("caller %d lost %d calls in %d kills, want at most one each time", i, n, kills)
		}
	}
	for what, query := range map[string]string{
		"numbers were received twice":                  `SELECT count(*) - count(DISTINCT number) FROM received`,
		"calls were received by a server without term": `SELECT count(*) FROM received WHERE term = 0`,
		"terms received calls in several processes":    `SELECT count(*) FROM (SELECT term FROM received GROUP BY term HAVING count(DISTINCT process) > 1) AS shared`,
	} {
		var n int64
		if err := db.QueryRow(t.Context(), query).Scan(&n); err != nil || n > 0 {
			t.Errorf("%d %s, %v", n, what, err)
		}
	}
	var terms, received int64
	if err := db.QueryRow(t.Context(), `SELECT count(DISTINCT term), count(*) FROM received`).Scan(&terms, &received); err != nil || terms != kills+1 || received < success.Load() {
		t.Errorf("%d calls in %d terms were received, %v; want at least %d in %d", received, terms, err, success.Load(), kills+1)
	}
}
