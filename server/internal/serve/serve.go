// Package serve implements the command "serve" for the dashboard.
package serve

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/retention"
	"github.com/exactly-one/tenure/server/dashboard"
	"github.com/exactly-one/tenure/server/internal/alertlinks"
	"github.com/exactly-one/tenure/server/internal/alerts"
)

const serveLong = `Serve the dashboard at /, the HTTP API at /v1, and metrics at /metrics and
/metrics/cluster. Also maintain the cluster's data: the leader of the role
metrics-aggregator evaluates the [[alerts]] of the configuration file and sends
notifications, and the leader of log-compactor rolls up the history. Start the
command on two machines: both serve, and one leader does each of these jobs.

Without an address, --listen accepts connections only from this machine. All clients
that can connect may view; with --login-required, only /healthz, /readyz and /leader
are open without a login. Actions need an operator: the token of --token-file, a user of
[[dashboard.users]] in the configuration file with access = "operator", or a user that a
reverse proxy names (--user-header, --trusted-proxy, --operator). Other users, and the
token of --viewer-token-file, may only view. The command "tenure serve password" hashes
passwords.

While metrics-aggregator has a leader, /metrics/cluster has the metrics of all nodes
that write samples: those that run with --listen, and programs with
metrics.NewReporter.`

// defaultServe is the dashboard's default address.
const defaultServe = "127.0.0.1:8080"

// serveCommand serves the dashboard and maintains the cluster's data.
type serveCommand struct {
	service.Flags

	out *console.Output

	dashboard bool
	login     bool
	header    string
	operators []string
	users     []config.User // of the configuration file
	oidc      bool          // the configuration file has a provider
	external  string
	proxies   []string
	hsts      flagvalue.Duration
	interval  flagvalue.Duration
	keep      flagvalue.Duration
}

// servedRecord is the address of the dashboard.
type servedRecord struct {
	URL string `json:"url"`
}

// New returns the command "tenure serve".
func New(out *console.Output) *cobra.Command {
	c := &serveCommand{out: out}
	cmd := &cobra.Command{
		Use: "serve --listen ADDRESS", Short: "Serve the dashboard, evaluate alerts, and roll up the history", Long: serveLong, Args: console.NoArgs,
		Example: "  tenure serve --dsn postgres://app@db/app --listen :8080\n  tenure serve --config tenure.toml --token-file /etc/tenure/token",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), cmd) },
	}
	c.register(cmd.Flags())
	cmd.AddCommand(newPassword(out))
	return cmd
}

func (c *serveCommand) register(flags *pflag.FlagSet) {
	c.Listen.Register(flags)
	listen := flags.Lookup("listen")
	listen.Usage = "serve on this `address`, HOST:PORT; :PORT is loopback only"
	listen.DefValue = defaultServe
	c.Listen.Address = defaultServe
	c.Node.Register(flags, "warn")
	c.Member.Register(flags)
	flags.BoolVar(&c.dashboard, "dashboard", true, "serve the dashboard at /")
	flags.BoolVar(&c.login, "login-required", false, "require a login to view the dashboard, the API and the metrics")
	flags.StringVar(&c.Listen.Viewers, "viewer-token-file", "", "`file` with the token of clients who may view and not act; default none")
	flags.StringArrayVar(&c.operators, "operator", nil, "`user` of --user-header who may act, while others may only view; repeatable; default all may act")
	flags.StringVar(&c.header, "user-header", "", "`header` in which a reverse proxy names the user; needs --trusted-proxy")
	flags.StringArrayVar(&c.proxies, "trusted-proxy", nil, "`address` or network of a reverse proxy, whose --user-header, X-Forwarded-For and X-Forwarded-Proto are trusted; repeatable")
	flags.StringVar(&c.external, "external-url", "", "`URL` at which users open the dashboard, for links in notifications; default none")
	c.hsts.AllowZero = true
	flags.Var(&c.hsts, "hsts", "how long browsers may use only TLS for this host name, on all of its ports, also behind a --trusted-proxy with TLS; 0s makes them forget; default 720h with --tls-cert, else not sent")
	flags.Var(&c.interval, "alert-interval", "time between two evaluations of the alerts; default 10s")
	flags.Var(&c.keep, "retention", "how long terms, changes of nodes, ended runs, changes by operators and settled dead letters are kept; the daily totals of the first three stay; default 2160h")
}

// check rejects settings that would fail only after the node has joined, or would lock
// everyone out.
func (c *serveCommand) check() error {
	switch {
	case c.Listen.Address == "":
		return console.Usage("--listen is empty; it must be an address, such as :8080")
	case c.keep.Value != 0 && c.keep.Value < time.Hour:
		return console.Usage("--retention is %v; it must be at least 1h", c.keep.Value)
	case c.login && !c.hasLogins():
		return console.Usage("--login-required needs a way to log in: use --token-file, --user-header, [[dashboard.users]] or [dashboard.oidc]")
	case c.oidc && c.external == "":
		return console.Usage("[dashboard.oidc] needs --external-url: the provider sends browsers back to it")
	case len(c.operators) > 0 && c.header == "":
		return console.Usage("--operator needs --user-header: it names users of the proxy")
	case c.login && !c.dashboard:
		return console.Usage("--login-required needs the dashboard: omit --dashboard=false")
	}
	if c.external != "" {
		if err := config.CheckExternalURL(c.external); err != nil {
			return console.Usage("--external-url is %q: %v", c.external, err)
		}
	}
	return nil
}

// hasLogins reports whether there is a way to log in.
func (c *serveCommand) hasLogins() bool {
	return c.Listen.Token != "" || c.Listen.Viewers != "" || c.header != "" || len(c.users) > 0 || c.oidc
}

// clusterName is the name of the cluster in notifications, if it has one.
func (c *serveCommand) clusterName() string {
	if c.Member.Name == service.DefaultClusterName {
		return ""
	}
	return c.Member.Name
}

// networks returns the trusted proxies.
func (c *serveCommand) networks() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range c.proxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, console.Usage("--trusted-proxy %q must be an address or a network, such as 10.0.0.7 or 10.0.0.0/8", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		all = append(all, network)
	}
	if c.header != "" && len(all) == 0 {
		return nil, console.Usage("--user-header needs --trusted-proxy: otherwise any client could send the header")
	}
	return all, nil
}

func (c *serveCommand) run(ctx context.Context, cmd *cobra.Command) error {
	if err := c.Node.Database.RequireSessions(cmd.CommandPath()); err != nil {
		return err
	}
	file := settings.Of(cmd.Flags())
	if cmd.Flags().Changed("hsts") {
		c.Listen.HSTS = &c.hsts.Value
	}
	c.users = file.File.Users()
	_, c.oidc = file.File.SignOn()
	if err := c.check(); err != nil {
		return err
	}
	proxies, err := c.networks()
	if err != nil {
		return err
	}
	nodeConfig, err := c.Node.Config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	passwords, err := newPasswords(c.users)
	if err != nil {
		return err
	}
	provider, err := c.openProvider(ctx, file.File, nodeConfig.Logger)
	if err != nil {
		return err
	}
	defer provider.Close()
	if observer := string(cluster.Observer); !slices.Contains(c.Member.Roles, observer) {
		c.Member.Roles = append(c.Member.Roles, observer) // no other node waits for this one
	}
	pool, alertsPool, err := c.pools(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer alertsPool.Close()
	rules, err := openLiveAlerts(file, alerts.Config{
		Database: alertsPool, Prefix: c.Listen.Prefix, Interval: c.interval.Value, Cluster: c.clusterName(), URL: c.external,
		Links: alertlinks.Of(file.File, c.Member.Name),
	})
	if err != nil {
		return err
	}
	defer rules.close()
	page := &latePage{}
	figures := rules.engine.Handler()
	if c.login {
		c.Listen.Protect = page.protect
		figures = page.protect(figures)
	}
	c.Listen.Page = c.beside(figures, page)
	c.Listen.Proxies, c.Listen.Database = proxies, pool
	var who dashboard.Authentication
	return c.Flags.Run(ctx, nodeConfig, service.Task{
		Live: settings.Live{
			settings.LiveList("alerts"):          rules.reload,
			settings.LiveList("dashboard.users"): func(string) error { return passwords.list(file.File.Users()) },
		},
		Samples: pool,
		Listening: func(server *service.HTTPServer) error {
			who = c.authentication(server, proxies, passwords, provider)
			return c.out.Print(servedRecord{server.URL()}, "serving "+server.URL())
		},
		Opened: func(p *service.Participant) (end func(), err error) {
			if !c.dashboard {
				return page.close, nil
			}
			return page.close, page.open(dashboard.Config{
				Backend: p.Node.Backend().(*postgres.Backend), Database: pool, Links: file.File.Links(), Alerts: rules.shown(p, alertsPool), HandleAlert: rules.handle(p, alertsPool), Title: c.Member.Name,
				Hosts: []string{httpguard.AnyHost}, Authentication: who, Logger: nodeConfig.Logger, MetricsPrefix: c.Listen.Prefix,
			})
		},
		Run: func(ctx context.Context, p *service.Participant, server *service.HTTPServer) error {
			return c.look(ctx, p, pool, rules.engine, server)
		},
	})
}

// pools returns connections for everything, and others for the alerts alone: nothing else
// can use up the latter.
func (c *serveCommand) pools(ctx context.Context) (all, ofAlerts *pgxpool.Pool, err error) {
	target, err := c.Node.Database.Target()
	if err != nil {
		return nil, nil, err
	}
	if all, err = target.Pool(ctx, "serve"); err != nil {
		return nil, nil, err
	}
	if ofAlerts, err = target.Pool(ctx, "serve alerts"); err != nil {
		all.Close()
		return nil, nil, err
	}
	return all, ofAlerts, nil
}

// beside handles paths outside the API. It is not an http.ServeMux: this would redirect
// paths such as //x.
func (c *serveCommand) beside(figures, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics/cluster" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			figures.ServeHTTP(w, r)
		case c.dashboard:
			page.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// look performs the cluster's maintenance while this node leads it, until ctx
// ends or one of the parts cannot continue.
func (c *serveCommand) look(ctx context.Context, p *service.Participant, pool *pgxpool.Pool, engine *alerts.Engine, server *service.HTTPServer) error {
	compactor, err := retention.New(p.Node, pool, retention.Config{Keep: c.keep.Value})
	if err != nil {
		return err
	}
	work := metrics.NewWork(p.Node.Backend().(*postgres.Backend), pool, server.Metrics.Config, metrics.WorkConfig{Logger: p.Node.Logger()})
	if err := server.Metrics.Registry.Register(work); err != nil {
		return err
	}
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return engine.Run(ctx, p.Node) }, compactor.Run, work.Run,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	var running sync.WaitGroup
	defer running.Wait()
	for _, part := range parts {
		running.Go(func() { ended <- part(ctx) })
	}
	for range parts {
		if err := <-ended; err != nil && !errors.Is(err, tenure.ErrStopped) && ctx.Err() == nil {
			cancel()
			return err
		}
	}
	return nil
}
