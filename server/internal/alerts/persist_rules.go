package alerts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// writtenRule is a rule as a statement takes it.
type writtenRule struct {
	Name        string            `json:"name"`
	Position    int               `json:"position"`
	Condition   string            `json:"condition"`
	For         int64             `json:"for_ms"`
	Severity    string            `json:"severity"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Description string            `json:"description"`
	Runbook     string            `json:"runbook"`
	Notify      []string          `json:"notify"`
}

// writeRules replaces all rules. Equal ones stay untouched.
func (t tables) writeRules(ctx context.Context, rules []Rule, by string) error {
	all, names := []writtenRule{}, []string{}
	orEmpty := func(m map[string]string) map[string]string {
		if m == nil {
			return map[string]string{}
		}
		return m
	}
	for i, r := range rules {
		names = append(names, r.Name)
		all = append(all, writtenRule{
			r.Name, i, r.Condition, r.For.Milliseconds(), r.Severity, orEmpty(r.Labels), orEmpty(r.Annotations), r.Description, r.Runbook, append([]string{}, r.Notify...),
		})
	}
	exist, err := t.Exist(ctx)
	if err == nil && !exist && len(rules) > 0 {
		err = t.Create(ctx)
	} else if err == nil && !exist {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the alert rules: %w", err)
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode the alert rules: %w", err)
	}
	err = pgx.BeginFunc(ctx, beginner{t.database}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, t.SQL(lockRules)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, t.SQL(removeRules), names); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, t.SQL(writeRules), string(encoded), by)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the alert rules: %w", err)
	}
	return nil
}
