//go:build linux

// Command chaos runs nodes that lead roles, run schedules, fill a view and send
// webhooks on one server, while a script of faults of every layer is carried out. It
// records everything, and judges afterwards. It prints what makes the same run
// again, and after a violation the shortest script that still fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

// command is all that the flags set.
type command struct {
	options
	seed        uint64
	duration    time.Duration
	kinds       string
	script      string
	printOnly   bool
	shrinkTime  time.Duration
	out         string
	state, page string
	summary     string
	server      string // that the nodes use, as messages name it
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		if err := runChild(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "chaos: node:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := parse().execute(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func parse() *command {
	c := new(command)
	flag.DurationVar(&c.duration, "duration", 5*time.Minute, "how long the script lasts")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "seed of the script") //nolint:gosec // the time is positive
	flag.IntVar(&c.nodes, "nodes", 5, "number of nodes")
	flag.IntVar(&c.roles, "roles", 20, "number of roles in addition to those of the schedules, the view and the outbox")
	flag.DurationVar(&c.lease, "lease", 4*time.Second, "the nodes' lease")
	flag.StringVar(&c.dsn, "dsn", "", "connection string of a superuser of an empty database to use instead of a private server")
	flag.StringVar(&c.kinds, "kinds", "", "comma-separated kinds of fault, or their layers; default all that this machine can make")
	flag.StringVar(&c.script, "script", "", "file with the script to carry out instead of one from the seed")
	flag.BoolVar(&c.printOnly, "print", false, "print the script and do not run it")
	flag.DurationVar(&c.shrinkTime, "shrink-time", 10*time.Minute, "how long to look for a shorter script after a violation; 0: not at all")
	flag.StringVar(&c.out, "out", "", "directory for the script and the records; default a new one for temporary files, after a violation only")
	flag.StringVar(&c.state, "state", "", "file that adds up the figures of several runs")
	flag.StringVar(&c.page, "page", "", "page of the documents to write the figures to")
	flag.StringVar(&c.summary, "summary", "", "page of the documents to write the figures to in one sentence")
	flag.BoolVar(&c.verbose, "v", false, "print each fault")
	flag.Parse()
	return c
}

func (c *command) execute(ctx context.Context) error {
	steps, h, err := c.once(ctx, nil)
	if err != nil || c.printOnly {
		return err
	}
	v := check.Check(h)
	fmt.Print(report(h, v))
	failed := c.saveRun(h, v)
	if len(v.Violations) == 0 {
		return failed
	}
	for _, violation := range v.Violations {
		fmt.Printf("VIOLATION, %s: %s\n", violation.Kind, violation.Text)
	}
	shortest := c.shrink(ctx, steps, v)
	fmt.Printf("The shortest script that still fails, with seed %d:\n%s", c.seed, script.Format(shortest))
	return errors.Join(failed, fmt.Errorf("%d violations with seed %d; see %s", len(v.Violations), c.seed, c.out), c.writeScript("shortest.txt", shortest))
}

// once makes one run. With nil it carries out the script of the command.
func (c *command) once(ctx context.Context, steps []script.Step) (_ []script.Step, h *record.History, err error) {
	b, err := newBed(ctx, c.options)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	first := steps == nil
	if first {
		if steps, err = c.steps(b); err != nil {
			return nil, nil, err
		}
		c.announce(b, steps)
		if c.printOnly {
			return steps, nil, nil
		}
	}
	h, err = b.run(ctx, steps)
	if err = errors.Join(b.checkServer(), err); err != nil {
		if first && ctx.Err() == nil {
			err = errors.Join(err, c.keepLogs(b, steps))
		}
		return nil, nil, err
	}
	if err := b.replay(); err != nil {
		h.Complaints = append(h.Complaints, err.Error())
	}
	if v := check.Check(h); first && (len(v.Violations) > 0 || c.out != "") {
		err = c.keep(b, h, v, steps)
	}
	return steps, h, err
}

func (c *command) steps(b *bed) ([]script.Step, error) {
	if c.script != "" {
		file, err := os.Open(c.script)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return script.Parse(file)
	}
	kinds, err := choose(b.kinds(), c.kinds)
	if err != nil {
		return nil, err
	}
	return script.Generate(script.Plan{
		Seed: c.seed, Duration: c.duration, Lease: c.lease, Nodes: c.nodes, Roles: c.roles, Kinds: kinds, Relayed: b.relayed,
	}), nil
}

func (c *command) announce(b *bed, steps []script.Step) {
	c.server = "the given server"
	if b.server != nil {
		c.server = "PostgreSQL " + b.server.Installation.Version
	}
	fmt.Printf("# Seed %d: %d faults in %v; %d nodes, %d roles, lease %v, on %s.\n", c.seed, len(steps), script.End(steps), c.nodes, c.roles, c.lease, c.server)
	for _, note := range b.notes {
		fmt.Println("#", note)
	}
	if c.verbose || c.printOnly {
		fmt.Print(script.Format(steps))
	}
}

// keep writes what there is to say about a violation.
func (c *command) keep(b *bed, h *record.History, v *check.Verdict, steps []script.Step) error {
	err := c.keepLogs(b, steps)
	return errors.Join(err, h.Write(filepath.Join(c.out, "history.json")), writeJSON(filepath.Join(c.out, "verdict.json"), v))
}

// keepLogs writes what there is to say about any run.
func (c *command) keepLogs(b *bed, steps []script.Step) error {
	if c.out == "" {
		directory, err := os.MkdirTemp("", fmt.Sprintf("tenure-chaos-%d-", c.seed))
		if err != nil {
			return err
		}
		c.out = directory
	}
	fmt.Println("Records:", c.out)
	return errors.Join(
		os.MkdirAll(c.out, 0o755), //nolint:gosec // it is for reading
		c.writeScript("script.txt", steps), b.keep(c.out),
	)
}

func (c *command) writeScript(name string, steps []script.Step) error {
	text := fmt.Sprintf("# Seed %d. Replay: make chaos NODES=%d ROLES=%d ARGS='-lease=%v -script=FILE'\n%s", c.seed, c.nodes, c.roles, c.lease, script.Format(steps))
	return os.WriteFile(filepath.Join(c.out, name), []byte(text), 0o644) //nolint:gosec // it is for reading
}
