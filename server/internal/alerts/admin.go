package alerts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/postgres"
)

// The bounds of a silence and of an acknowledgment.
const (
	MinAttention = time.Minute
	MaxAttention = 365 * 24 * time.Hour
)

// Errors of an [Admin]; errors.Is finds them.
var (
	ErrNoSilence = errors.New("no current silence has this number")
	ErrNotFiring = errors.New("no firing alert has this name and these labels")
)

// UnknownRuleError reports a name that no rule has.
type UnknownRuleError struct {
	Name  string
	Known []string
}

func (e *UnknownRuleError) Error() string {
	if e.Name == "" {
		return "there are no alerts: no process has written rules"
	}
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no alert %q: no process has written rules", e.Name)
	}
	return fmt.Sprintf("there is no alert %q", e.Name)
}

// Is makes the error one for the user to mend.
func (*UnknownRuleError) Is(target error) bool { return target == tenure.ErrInvalidConfig }

// Admin silences and acknowledges alerts, and reads the history. It is safe for
// concurrent use.
type Admin struct{ tables }

// NewAdmin returns an Admin. The database's user needs the privileges of
// [postgres.Backend.WorkGrants].
func NewAdmin(backend *postgres.Backend, database postgres.Database) *Admin {
	return &Admin{tablesOf(backend, database)}
}

// Silence records a silence of a length from now on, and returns it with its number. It
// needs a rule or a matcher, and an author. An error matches tenure.ErrInvalidConfig
// if the silence cannot be.
func (a *Admin) Silence(ctx context.Context, s Silence, length time.Duration) (Silence, error) {
	if s.Rule == "" && len(s.Matchers) == 0 {
		return s, invalid("a silence must name an alert or a label")
	}
	if err := checkAttention(s.CreatedBy, length, s.Matchers, s.Rule, s.Comment); err != nil {
		return s, err
	}
	if err := a.checkRule(ctx, s.Rule); err != nil {
		return s, err
	}
	matchers := maps.Clone(s.Matchers)
	if matchers == nil {
		matchers = map[string]string{}
	}
	rows, _ := a.database.Query(ctx, a.SQL(addSilence), s.Rule, matchers, s.Comment, s.CreatedBy, length.Milliseconds())
	_, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&s.ID, &s.CreatedAt, &s.Until)
	})
	if err != nil {
		return s, fmt.Errorf("write the silence: %w", err)
	}
	return s, nil
}

// Unsilence ends a silence early. An error matches [ErrNoSilence] if it does not last.
func (a *Admin) Unsilence(ctx context.Context, id int64, by string) error {
	if err := checkAttention(by, MinAttention, nil); err != nil {
		return err
	}
	if exist, err := a.Exist(ctx); err != nil || !exist {
		return errors.Join(err, ErrNoSilence)
	}
	tag, err := a.database.Exec(ctx, a.SQL(endSilence), id, by)
	if err != nil {
		return fmt.Errorf("end the silence: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%w: %d", ErrNoSilence, id)
	}
	return nil
}

// UnsilenceAlert ends the silences of an alert with a rule and labels early. Without
// labels, it ends all silences with the name of the rule. An error matches [ErrNoSilence]
// if there is no such silence now.
func (a *Admin) UnsilenceAlert(ctx context.Context, rule string, labels map[string]string, by string) error {
	all, err := a.Silences(ctx, false)
	if err != nil {
		return err
	}
	ended := 0
	for _, s := range all {
		if len(labels) == 0 && s.Rule != rule || len(labels) > 0 && !s.Matches(rule, labels) {
			continue
		}
		err := a.Unsilence(ctx, s.ID, by)
		if err != nil && !errors.Is(err, ErrNoSilence) {
			return err
		}
		ended++
	}
	if ended == 0 {
		return fmt.Errorf("%w: %q", ErrNoSilence, rule)
	}
	return nil
}

// Silences returns the present silences, or all in the database, the latest first.
func (a *Admin) Silences(ctx context.Context, all bool) ([]Silence, error) {
	if exist, err := a.Exist(ctx); err != nil || !exist {
		return nil, err
	}
	rows, _ := a.database.Query(ctx, a.SQL(listSilences), all)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Silence, err error) {
		var ended *time.Time
		err = row.Scan(&s.ID, &s.Rule, &s.Matchers, &s.Comment, &s.CreatedBy, &s.CreatedAt, &s.Until, &s.EndedBy, &ended)
		s.EndedAt = orZero(ended)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the silences: %w", err)
	}
	return list, nil
}

// Acknowledge records that an operator handles some alerts: the firing alerts of a rule
// with all labels in matchers. It returns their number. If an alert still fires after the
// given time, its receivers are notified again. An error matches [ErrNotFiring] if there
// are no such alerts.
func (a *Admin) Acknowledge(ctx context.Context, rule string, matchers map[string]string, by string, length time.Duration) (alerts int, err error) {
	if err := checkAttention(by, length, matchers, rule); err != nil {
		return 0, err
	}
	if err := a.checkRule(ctx, rule); err != nil {
		return 0, err
	}
	encoded, err := json.Marshal(matchers)
	if err != nil {
		return 0, fmt.Errorf("encode: %w", err)
	}
	if matchers == nil {
		encoded = []byte("{}")
	}
	rows, _ := a.database.Query(ctx, a.SQL(acknowledge), rule, string(encoded), by, length.Milliseconds())
	if alerts, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil {
		return 0, fmt.Errorf("acknowledge the alerts: %w", err)
	}
	if alerts == 0 {
		return 0, fmt.Errorf("%w: %q", ErrNotFiring, rule)
	}
	return alerts, nil
}

// checkRule returns an [*UnknownRuleError] if the named rule does not exist.
func (a *Admin) checkRule(ctx context.Context, rule string) error {
	names, err := a.RuleNames(ctx)
	if err != nil {
		return err
	}
	if names == nil || rule != "" && !slices.Contains(names, rule) {
		return &UnknownRuleError{rule, names}
	}
	return nil
}

// RuleNames returns the names of all rules; nil if there are no tables for them.
func (a *Admin) RuleNames(ctx context.Context) ([]string, error) {
	if exist, err := a.Exist(ctx); err != nil || !exist {
		return nil, err
	}
	rows, _ := a.database.Query(ctx, a.SQL(listRuleNames))
	names, err := pgx.AppendRows([]string{}, rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the alert rules: %w", err)
	}
	return names, nil
}

// checkAttention checks the input of operators.
func checkAttention(by string, length time.Duration, matchers map[string]string, texts ...string) error {
	switch {
	case strings.TrimSpace(by) == "":
		return invalid("the author is empty")
	case length < MinAttention || length > MaxAttention:
		return invalid("the duration is %v; it must be from %v to %v", length, MinAttention, MaxAttention)
	}
	texts = append(texts, by)
	for _, name := range slices.Sorted(maps.Keys(matchers)) {
		if !alerting.IsName(name) {
			return invalid("%q cannot be the name of a label", name)
		}
		texts = append(texts, matchers[name])
	}
	for _, text := range texts {
		if storable(text, maxError) != text || strings.ContainsFunc(text, unicode.IsControl) {
			return invalid("%q has control characters, or more than %d bytes", text[:min(len(text), 40)], maxError)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}

// Past is an alert of the history.
type Past struct {
	ID                  int64
	Rule, Severity      string
	Labels              map[string]string
	Summary, Incident   string
	FiredAt             time.Time
	EndedAt             time.Time // zero while it fires
	SilencedBy, AckedBy string
}

// HistoryQuery selects alerts of the history. Its zero value selects the latest 1,000.
type HistoryQuery struct {
	Rule         string
	Since, Until time.Time
	Limit        int
}

// History returns fired alerts, the latest first. If there are none and no rule has the
// name in the query, the error is an [*UnknownRuleError].
func (a *Admin) History(ctx context.Context, query HistoryQuery) ([]Past, error) {
	if exist, err := a.Exist(ctx); err != nil || !exist {
		return nil, err
	}
	orNull := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	query.Limit = cmp.Or(query.Limit, 1000)
	rows, _ := a.database.Query(ctx, a.SQL(listHistory), query.Rule, orNull(query.Since), orNull(query.Until), query.Limit)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Past, err error) {
		var ended *time.Time
		err = row.Scan(&p.ID, &p.Rule, &p.Severity, &p.Labels, &p.Summary, &p.FiredAt, &ended, &p.SilencedBy, &p.AckedBy, &p.Incident)
		p.EndedAt = orZero(ended)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of alerts: %w", err)
	}
	if len(all) == 0 && query.Rule != "" {
		return nil, a.checkRule(ctx, query.Rule)
	}
	return all, nil
}
