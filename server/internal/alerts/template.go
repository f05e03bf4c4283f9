package alerts

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// definitions are the beginning of Prometheus's templates.
const definitions = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

// CheckTemplate returns an error if the text is not a valid template.
func CheckTemplate(text string) error {
	if err := checkTemplateBounds(text); err != nil {
		return err
	}
	return expander(context.Background(), text, nil, time.Time{}, nil).ParseTest()
}

func expander(ctx context.Context, text string, data any, now time.Time, query template.QueryFunc) *template.Expander {
	e := template.NewTemplateExpander(
		ctx, definitions+text, "template", data, model.TimeFromUnixNano(now.UnixNano()), query, &url.URL{}, nil)
	e.Funcs(boundedFunctions)
	return e
}

// expand fills in templates for one series. Its error replaces a failing template.
// Without time left, a template stays unexpanded: the alert is sent in any case.
func expand(
	ctx context.Context, templates map[string]string, series map[string]string, value float64, now time.Time, query template.QueryFunc,
) map[string]string {
	expanded := make(map[string]string, len(templates))
	data := template.AlertTemplateData(series, map[string]string{}, "", promql.Sample{F: value})
	for name, text := range templates {
		if strings.Contains(text, "{{") && ctx.Err() == nil {
			result, err := "", checkTemplateBounds(text) // it may be of the database
			if err == nil {
				result, err = expander(ctx, text, data, now, query).Expand()
			}
			if err != nil {
				result = fmt.Sprintf("<error expanding template: %v>", err)
			}
			text = result
		}
		expanded[name] = storable(text, maxText)
	}
	return expanded
}
