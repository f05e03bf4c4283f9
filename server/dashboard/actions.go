package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/audit"
	"github.com/exactly-one/tenure/processor"
)

// act performs the requested action, records it, and answers with the outcome.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody[actionBody](w, r)
	if !ok {
		return
	}
	by := visitorOf(r).user
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actionTimeout + outcomeTimeout + stallTimeout))
	before, asked := d.snapshot.eventsSeen(), d.snapshot.clockNow()
	about, err := d.perform(ctx, body, by)
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
	}
	d.log.Log(ctx, level, "a visitor requested an action on the dashboard", "action", body.Action, "name", body.Name, "node", about.node, "by", by, "from", d.guard.addressOf(r), "error", err)
	if err != nil {
		status, message := explain(err, body)
		answer(w, status, refusal{message, errors.Is(err, tenure.ErrLastNode)})
		return
	}
	event := d.snapshot.note(eventRecord{
		Kind: eventAction, Role: about.role, Node: about.node, NodeName: about.nodeName, By: by, Status: body.Action, Detail: about.detail,
	})
	d.publish(changeRecord{Roles: []roleRecord{}, Events: []eventRecord{event}})
	d.notify()
	answer(w, http.StatusOK, d.await(r.Context(), pendingAction{body, before, asked, about.run, about.letters, about.rebalanced}))
}

// refusal is why an action was not done.
type refusal struct {
	Error    string `json:"error"`
	Forcible bool   `json:"forcible"` // it can be requested with force
}

// subject is the object of an action.
type subject struct {
	role, nodeName, detail string
	node                   uuid.UUID
	run                    int64 // the requested run of a schedule
	letters                int   // how many dead letters are replayed or dismissed
	rebalanced             rebalanced
}

// perform performs the requested action.
func (d *Dashboard) perform(ctx context.Context, body actionBody, by string) (subject, error) {
	about := subject{node: body.Node, nodeName: d.snapshot.nodeName(body.Node)}
	switch body.Action {
	case stepDown, handOver:
		about.role = body.Name
		kind := tenure.RequestStepDown
		if body.Action == handOver {
			kind = tenure.RequestHandOver
		}
		return about, d.request(ctx, tenure.Request{Kind: kind, Role: body.Name, Term: body.Term, Target: body.Node, By: by}, "role", body.Name)
	case drain, undrain:
		kind := tenure.RequestDrain
		if body.Action == undrain {
			kind = tenure.RequestUndrain
		}
		return about, d.request(ctx, tenure.Request{Kind: kind, Node: body.Node, Force: body.Force, By: by}, "node", body.Node.String())
	}
	switch body.Action {
	case forgetNode:
		return about, d.forget(ctx, body.Node, about.nodeName, by)
	case rebalanceRoles:
		var err error
		about.rebalanced, err = d.rebalance(ctx, by)
		return about, err
	}
	about.detail = body.Name
	if body.Action == silenceAlert || body.Action == unsilenceAlert || body.Action == acknowledgeAlert {
		return about, d.actOnAlert(ctx, body, by)
	}
	if d.processors == nil {
		return about, errUnknown
	}
	err := d.actOnWork(ctx, body, by, &about)
	return about, err
}

// actOnWork performs an action on a processor or a schedule.
func (d *Dashboard) actOnWork(ctx context.Context, body actionBody, by string, about *subject) (err error) {
	switch body.Action {
	case pauseProcessor:
		return d.processors.Pause(ctx, body.Name, by)
	case resumeProcessor:
		return d.processors.Resume(ctx, body.Name, by)
	case retryProcessor:
		return d.processors.Retry(ctx, body.Name, by)
	case skipEvent, rewindProcessor:
		return d.moveCursor(ctx, body, by)
	case replayLetters, dismissLetters:
		about.letters, err = d.actOnLetters(ctx, body, by)
		return err
	case triggerSchedule:
		about.run, err = d.schedules.Trigger(ctx, body.Name, by)
		return err
	case pauseSchedule:
		return d.schedules.Pause(ctx, body.Name, by)
	case resumeSchedule:
		return d.schedules.Resume(ctx, body.Name, by)
	default:
		return errUnknown
	}
}

// moveCursor skips an event, or rewinds a processor. The event must be named: only the
// one seen by the user may be skipped.
func (d *Dashboard) moveCursor(ctx context.Context, body actionBody, by string) error {
	event, err := processor.ParseCursor(body.Event)
	if err != nil {
		return invalid("the event is %q", body.Event)
	}
	if body.Action == rewindProcessor {
		return d.processors.Rewind(ctx, body.Name, event, by)
	}
	if event == (processor.Cursor{}) {
		return invalid("the event to skip must be named")
	}
	_, err = d.processors.Skip(ctx, body.Name, event, by)
	return err
}

// forget removes a dead node from the registry, and records the action.
func (d *Dashboard) forget(ctx context.Context, node uuid.UUID, name, by string) error {
	if !d.snapshot.isDead(node) {
		return errNotDead
	}
	if _, err := d.config.Backend.MarkDead(ctx, 0); err != nil { // it may be silent without having been marked dead
		return err
	}
	if err := d.config.Backend.Forget(ctx, node); err != nil {
		return err
	}
	d.recordAction(ctx, by, "node", name, "forget", node.String())
	return nil
}

// errNotDead is the error for a request to forget a node before its death.
var errNotDead = errors.New("only a dead node can be forgotten")

// actOnLetters requests to handle dead letters again, or dismisses them. It dismisses
// only the named ones, seen by the user.
func (d *Dashboard) actOnLetters(ctx context.Context, body actionBody, by string) (int, error) {
	var ids []int64
	for _, text := range body.Letters {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, errUnknown
		}
		ids = append(ids, id)
	}
	switch {
	case body.Action == replayLetters:
		return d.processors.Replay(ctx, body.Name, ids, by)
	case len(ids) == 0:
		return 0, invalid("the dead letters to dismiss must be named")
	default:
		return d.processors.Dismiss(ctx, body.Name, ids, by)
	}
}

// request sends a request to a leader or a node, and records it if there is a database
// for the record.
func (d *Dashboard) request(ctx context.Context, request tenure.Request, kind, name string) error {
	if err := d.config.Backend.Request(ctx, request); err != nil {
		return err
	}
	d.recordAction(ctx, request.By, kind, name, string(request.Kind), "")
	return nil
}

// recordAction records an action that has been done or requested: a request itself is
// removed when it is handled. A failure is logged only.
func (d *Dashboard) recordAction(ctx context.Context, by, kind, name, action, detail string) {
	if d.config.Database == nil {
		return
	}
	err := audit.Record(ctx, d.config.Backend, d.config.Database, audit.Entry{By: by, Kind: kind, Name: name, Action: action, Detail: detail})
	if err != nil {
		d.log.Warn("an action was not recorded in the database", "action", action, "name", name, "by", by, "error", err)
	}
}

// explain returns a sentence with the reason why an action was not done.
func explain(err error, body actionBody) (status int, message string) {
	var noProcessor *processor.UnknownError
	var noSchedule *cron.UnknownError
	switch {
	case errors.Is(err, tenure.ErrNoLeader), errors.Is(err, errNotDead), errors.Is(err, tenure.ErrUnknownNode), errors.Is(err, tenure.ErrLastNode), errors.Is(err, ErrNoAlert):
		return http.StatusConflict, conflict(err, body)
	case errors.Is(err, errUnknown), errors.As(err, &noProcessor), errors.As(err, &noSchedule):
		return http.StatusNotFound, fmt.Sprintf("there is nothing called %s to act on", quoted(body.Name))
	case errors.Is(err, tenure.ErrInvalidConfig) && body.Action == skipEvent:
		return http.StatusConflict, "this event does not fail at the moment, or its leader still tries the events of a batch one at a time"
	case errors.Is(err, tenure.ErrInvalidConfig) && body.Action == rewindProcessor:
		return http.StatusConflict, "no event can have this position"
	case errors.Is(err, tenure.ErrInvalidConfig), errors.Is(err, tenure.ErrInvalidRole):
		return http.StatusBadRequest, "that cannot be asked for"
	case errors.Is(err, dberr.ErrPrivilege):
		return http.StatusForbidden, "the dashboard's database user may not do that"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "the database did not answer in time, so the request may or may not have been recorded; check again later"
	default:
		return http.StatusServiceUnavailable, "the database did not accept the request; see the log of the dashboard"
	}
}

// conflict states why an action cannot be done at the moment.
func conflict(err error, body actionBody) string {
	switch {
	case errors.Is(err, tenure.ErrNoLeader) && body.Term != 0:
		return fmt.Sprintf("term %d of the role is over", body.Term)
	case errors.Is(err, tenure.ErrNoLeader):
		return "no node leads the role at the moment"
	case errors.Is(err, errNotDead):
		return "the node is not dead: stop it, or drain it"
	case errors.Is(err, tenure.ErrUnknownNode) && body.Action == forgetNode:
		return "the node has come back, or was forgotten already"
	case errors.Is(err, tenure.ErrUnknownNode):
		return "the node has died or left"
	case errors.Is(err, tenure.ErrLastNode):
		return "no other node would be active"
	case body.Action == unsilenceAlert:
		return "no silence of this alert lasts"
	default:
		return "no such alert fires at the moment"
	}
}

// rebalance moves shared roles to the best placement. It is no error if roles have not
// moved when ctx ends.
func (d *Dashboard) rebalance(ctx context.Context, by string) (rebalanced, error) {
	plan, err := cluster.PlanRebalance(ctx, d.config.Backend)
	result := rebalanced{sharing: len(plan.Nodes), planned: len(plan.Moves)}
	if err != nil || result.planned == 0 {
		return result, err
	}
	d.recordAction(ctx, by, "cluster", d.config.Title, "rebalance", count(result.planned, "role moves", "roles move"))
	if err = plan.Apply(ctx, d.config.Backend, by, nil); err != nil && ctx.Err() != nil {
		result.late, err = true, nil
	}
	return result, err
}
