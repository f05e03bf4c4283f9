package alerts

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/exactly-one/tenure/internal/program/alerting"
)

// language is PromQL as Prometheus has it without experimental features.
var language = parser.NewParser(parser.Options{})

// CheckCondition returns a [*alerting.ConditionError] if the text is not a valid condition.
func CheckCondition(condition string) error {
	_, err := parse(condition)
	return err
}

func parse(condition string) (parser.Expr, error) {
	if len(condition) > maxCondition {
		return nil, conditionError(condition, 0, fmt.Sprintf("the condition has %d bytes; the limit is %d", len(condition), maxCondition))
	}
	expression, err := language.ParseExpr(condition)
	var several parser.ParseErrors
	switch {
	case errors.As(err, &several) && len(several) > 0:
		first := several[0]
		return nil, conditionError(condition, int(first.PositionRange.Start), first.Err.Error())
	case err != nil:
		return nil, conditionError(condition, 0, err.Error())
	case expression.Type() != parser.ValueTypeVector && expression.Type() != parser.ValueTypeScalar:
		return nil, conditionError(condition, 0, fmt.Sprintf(
			"a condition yields one value of each series, and this yields a %s", parser.DocumentedType(expression.Type())))
	}
	if err := checkBounds(condition, expression); err != nil {
		return nil, err
	}
	return expression, nil
}

func conditionError(condition string, offset int, message string) error {
	before := condition[:min(max(offset, 0), len(condition))]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return &alerting.ConditionError{
		Offset: len(before), Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(line) + 1,
		Message: message,
	}
}

// rolesIn returns the roles named in a condition: they are known even if no node was ever
// a candidate for them.
func rolesIn(condition string) []string {
	expression, err := parse(condition)
	if err != nil {
		return nil
	}
	var roles []string
	for _, matchers := range parser.ExtractSelectors(expression) {
		for _, m := range matchers {
			if m.Name == "role" && m.Type == labels.MatchEqual && m.Value != "" {
				roles = append(roles, m.Value)
			}
		}
	}
	return roles
}
