package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

const observeLong = `Print who leads, and then every change, until a signal.

It needs to read only. News of a vacancy arrives at once, and who leads next is
looked up in the moments after it; in case news is lost, the database is also
asked every --check-interval. Without --role, --key or --key1 and --key2 it
follows all roles. With -o json each change is one object on a line of its own:
time, role, leader (null if nobody leads now) and previous.`

// aftermath is when to look again after news. That a role is vacant, or a node
// new, is announced; that a term has begun, shortly after, is not.
var aftermath = [...]time.Duration{
	10 * time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second,
}

// observeCommand follows who leads.
type observeCommand struct {
	out      *output
	database databaseFlags
	log      logFlags
	roles    roleFlags
	check    duration

	known map[string]tenure.Leader
}

func newObserve(out *output) *cobra.Command {
	c := &observeCommand{out: out, check: duration{value: time.Second}, known: map[string]tenure.Leader{}}
	cmd := &cobra.Command{
		Use:   "observe [--role NAME]...",
		Short: "Follow who leads",
		Long:  observeLong,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.roles.register(flags, "follow")
	c.database.register(flags)
	c.log.register(flags, "warn")
	flags.Var(&c.check, "check-interval", "time between questions when no news comes")
	return cmd
}

// changeRecord is a change of leadership as it is printed.
type changeRecord struct {
	Time     timestamp     `json:"time"`
	Role     string        `json:"role"`
	Leader   *leaderRecord `json:"leader"`
	Previous *leaderRecord `json:"previous"`
}

func (c *observeCommand) run(cmd *cobra.Command) error {
	roles, err := c.roles.roles()
	if err != nil {
		return err
	}
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = role.Name()
	}
	logger, err := c.log.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	backend, err := c.database.open(postgres.Config{})
	if err != nil {
		return err
	}
	defer backend.Close()

	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	look := func() error {
		leaders, err := backend.Leaders(ctx, names...)
		if err != nil {
			return err
		}
		return c.tell(time.Now(), leaders)
	}
	if err := look(); err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		c.listen(ctx, backend, wake, logger.Warn)
	}()
	defer func() {
		cancel()
		<-listening
	}()
	next := time.NewTimer(c.check.value)
	defer next.Stop()
	for looked := len(aftermath); ; looked++ {
		pause := c.check.value
		if looked < len(aftermath) {
			pause = min(pause, aftermath[looked])
		}
		next.Reset(pause)
		select {
		case <-wake:
			looked = -1
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
		if err := look(); err != nil && ctx.Err() == nil {
			logger.Warn("looking up the leaders failed", "error", err)
		}
	}
}

// listen wakes the command at each notification. While that does not work, the
// check interval has to do.
func (c *observeCommand) listen(ctx context.Context, backend *postgres.Backend, wake chan<- struct{}, warn func(string, ...any)) {
	for ctx.Err() == nil {
		err := backend.Listen(ctx, func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		if ctx.Err() == nil {
			warn("listening for news failed", "error", err)
		}
		pause := time.NewTimer(c.check.value)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// tell prints what differs from the leaders known before, and knows them.
func (c *observeCommand) tell(now time.Time, leaders []tenure.Leader) error {
	present := map[string]tenure.Leader{}
	for _, leader := range leaders {
		present[leader.Role] = leader
	}
	before := c.known
	c.known = present
	roles := slices.Collect(maps.Keys(present))
	for role := range before {
		if _, still := present[role]; !still {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	for _, role := range roles {
		previous, leader := pick(before, role), pick(present, role)
		if previous != nil && leader != nil && previous.Term == leader.Term && previous.NodeID == leader.NodeID {
			continue
		}
		record := changeRecord{timestamp(now), role, newLeaderRecord(leader), newLeaderRecord(previous)}
		if err := c.out.print(record, fmt.Sprintf("%s  %s", shortTime(now), leadsText(role, leader))); err != nil {
			return err
		}
	}
	return nil
}

func pick(leaders map[string]tenure.Leader, role string) *tenure.Leader {
	if leader, ok := leaders[role]; ok {
		return &leader
	}
	return nil
}
