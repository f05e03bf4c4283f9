// Package proxy implements the command "proxy": it forwards connections to a leader.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/tcpproxy"
	"github.com/exactly-one/tenure/internal/leaderwatch"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/sidecar"
	"github.com/exactly-one/tenure/leaderhttp"
)

const long = `Accept connections and forward them to the current leader of a role, until a signal.

The leader's node publishes its address with --address of tenure run; the default is
the address of its machine. --to-port is the port of the leader's program. With
--http its default is the port that the node publishes with --http-port.

While the role has no leader, or the leader accepts no connection, clients wait for
at most --wait. When the leader's term ends, its connections are reset.

With --http each request is forwarded separately, and clients keep their connections
when the leader changes. A request is never sent twice: if the connection to the
leader breaks before the answer, the client gets 502.

The command only reads the database, and waits until the first node has created the
tables. After a signal it accepts no more connections; the open ones have --grace to end.`

// command forwards connections.
type command struct {
	out      *console.Output
	database connect.DatabaseFlags
	log      console.LogFlags
	roles    flagvalue.RoleFlags
	listen   string
	toPort   flagvalue.Number
	http     bool
	wait     flagvalue.Duration
	grace    flagvalue.Duration
	most     flagvalue.Number
	ofOne    flagvalue.Number
}

// New returns the command "tenure proxy".
func New(out *console.Output) *cobra.Command {
	c := &command{
		out: out, wait: flagvalue.Duration{Value: 10 * time.Second}, grace: flagvalue.Duration{Value: 10 * time.Second, AllowZero: true},
		toPort: flagvalue.Number{Most: 65535}, most: flagvalue.Number{Value: 1024, Most: 1_000_000}, ofOne: flagvalue.Number{Most: 1_000_000},
	}
	cmd := &cobra.Command{
		Use:     "proxy --role NAME --listen [HOST]:PORT --to-port PORT",
		Short:   "Forward connections to the leader of a role",
		Long:    long,
		Example: "  tenure proxy --role billing --listen :5433 --to-port 5432\n  tenure proxy --role billing --listen :8081 --http",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.roles.RegisterSingle(flags, "forward to")
	c.database.Register(flags)
	c.log.Register(flags, "warn")
	flags.StringVar(&c.listen, "listen", "", "`address` to accept connections on, HOST:PORT; :PORT is loopback only")
	flags.Var(&c.toPort, "to-port", "port of the leader's program; with --http the default is the port that its node publishes")
	flags.Lookup("to-port").DefValue = ""
	flags.BoolVar(&c.http, "http", false, "forward HTTP requests instead of connections")
	flags.Var(&c.wait, "wait", "how long a connection or request may wait for the leader")
	flags.Var(&c.most, "max-connections", "maximum number of open connections; further ones are closed")
	flags.Var(&c.ofOne, "max-per-address", "maximum number of open connections of one other machine; default half of --max-connections")
	flags.Lookup("max-per-address").DefValue = ""
	flags.Var(&c.grace, "grace", "how long open connections may continue after a signal")
	return cmd
}

// listening is the command's output when it accepts connections.
type listening struct {
	Role    string `json:"role"`
	Address string `json:"address"`
}

// check returns the role to forward to, or an error about the flags.
func (c *command) check(cmd *cobra.Command) (tenure.Role, error) {
	roles, err := c.roles.Required()
	switch {
	case err != nil:
		return tenure.Role{}, err
	case len(roles) > 1:
		return tenure.Role{}, console.Usage("%d roles are named; a proxy forwards to the leader of one", len(roles))
	case c.listen == "":
		return tenure.Role{}, console.Usage("no address is named: use --listen HOST:PORT, or :PORT for this machine only")
	case c.toPort.Value == 0 && !c.http:
		return tenure.Role{}, console.Usage("no port of the leader is named: use --to-port PORT, or --http for the port that its node publishes")
	case c.most.Value == 0:
		return tenure.Role{}, console.Usage("--max-connections is 0; it must be at least 1")
	case c.ofOne.Value == 0 && cmd.Flags().Changed("max-per-address"):
		return tenure.Role{}, console.Usage("--max-per-address is 0; it must be at least 1")
	}
	return roles[0], nil
}

func (c *command) run(cmd *cobra.Command) error {
	role, err := c.check(cmd)
	if err != nil {
		return err
	}
	console.SurviveClosedOutput()
	logger, err := c.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	backend, err := c.database.Open(ctx, false)
	if err != nil {
		return err
	}
	defer backend.Close()
	err = connect.AwaitTables(ctx, backend, logger, func(ctx context.Context) error {
		_, err := backend.Leaders(ctx, role.Name())
		return err
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	listener, err := sidecar.Bind(ctx, c.listen)
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := c.out.Print(listening{role.Name(), address}, "forwarding "+address+" to the leader of "+console.Flatten(role.Name())); err != nil {
		return errors.Join(err, listener.Close())
	}
	listener = tcpproxy.Limit(listener, c.most.Value, cmp.Or(c.ofOne.Value, (c.most.Value+1)/2), logger)
	if c.http {
		return c.serveHTTP(ctx, listener, backend, role, logger)
	}
	return c.serveTCP(ctx, listener, backend, role, logger)
}

func (c *command) serveTCP(ctx context.Context, listener net.Listener, backend tenure.Backend, role tenure.Role, logger *slog.Logger) error {
	source := leaderwatch.OfBackend(backend, role.Name())
	source.Log = logger
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	watch := leaderwatch.Start(watching, source)
	defer func() {
		stop()
		<-watch.Done()
	}()
	server := tcpproxy.Server{Watch: watch, Address: c.address, Wait: c.wait.Value, Grace: c.grace.Value, Log: logger}
	return server.Serve(ctx, listener)
}

// The bounds on the resources of an HTTP client without a request in progress.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

func (c *command) serveHTTP(ctx context.Context, listener net.Listener, backend tenure.Backend, role tenure.Role, logger *slog.Logger) error {
	proxy, err := leaderhttp.NewProxy(context.WithoutCancel(ctx), backend, role, leaderhttp.Config{
		Wait: c.wait.Value, MaxWaiting: c.most.Value, Address: c.address, Logger: logger,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer proxy.Close()
	server := &http.Server{
		Handler: proxy, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		DisableGeneralOptionsHandler: true, // the leader answers "OPTIONS *", like all requests
	}
	ended := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.grace.Value)
		defer cancel()
		if server.Shutdown(limited) != nil {
			_ = server.Close() // cuts what did not end in time
		}
		ended <- nil
	})
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return <-ended
}

// address returns where a leader accepts connections, "" if unknown.
func (c *command) address(leader tenure.Leader) string {
	host, port := cmp.Or(leader.Address, leader.Host), cmp.Or(c.toPort.Value, leader.HTTPPort)
	if host == "" || port == 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
