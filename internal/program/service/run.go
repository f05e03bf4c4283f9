package service

import (
	"context"
	"errors"
	"log/slog"
	"maps"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// Flags are the flags of a command whose node is a member of its cluster and runs until a
// signal.
type Flags struct {
	Node   NodeFlags
	Listen ListenFlags
	Member MembershipFlags
}

// Task is a command's work with its node.
type Task struct {
	// Live are settings that can change while the task runs, in addition to the node's.
	Live settings.Live
	// Listening, if not nil, is called when the HTTP server listens, before the
	// database is opened. The server is nil without --listen.
	Listening func(*HTTPServer) error
	// Opened, if not nil, is called before the HTTP server answers for the node. end is
	// called after the task and before the server closes, which waits for open streams.
	Opened func(*Participant) (end func(), err error)
	// Samples is the pool for writing samples; nil for a separate pool.
	Samples *pgxpool.Pool
	// Run is the task. The node leaves when it returns.
	Run func(context.Context, *Participant, *HTTPServer) error
}

// Run serves HTTP, opens the node, joins its cluster, writes samples and runs
// the task until ctx ends. Then it leaves.
func (f *Flags) Run(ctx context.Context, config tenure.Config, task Task) error {
	server, err := f.Listen.open(ctx, config.Logger)
	if err != nil {
		return err
	}
	defer server.close()
	if task.Listening != nil {
		if err := task.Listening(server); err != nil {
			return err
		}
	}
	f.Member.listening(server)
	live := f.Member.leaving.live()
	maps.Copy(live, task.Live)
	err = f.Node.run(ctx, config, f.Member.join, live, func(ctx context.Context, p *Participant) error {
		return f.serve(ctx, p, server, config.Logger, task)
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // a signal arrived before the first session was open
	}
	return err
}

// serve runs the task with an open node.
func (f *Flags) serve(ctx context.Context, p *Participant, server *HTTPServer, log *slog.Logger, task Task) error {
	if task.Opened != nil {
		end, err := task.Opened(p)
		if err != nil {
			return err
		}
		defer end()
	}
	server.attach(p, f.Member.Name)
	stop, err := server.sample(ctx, p, &f.Node.Database, task.Samples)
	if err != nil {
		return err
	}
	defer stop()
	defer f.Member.report(ctx, p, log)()
	return task.Run(ctx, p, server)
}
