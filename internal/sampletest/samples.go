// Package sampletest stores samples of metrics at chosen times, as nodes do that run a
// metrics.Reporter.
package sampletest

import (
	"bytes"
	"compress/gzip"
	"strings"
	"time"

	"github.com/google/uuid"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/exactly-one/tenure/internal/postgrestest"
)

// format is how package metrics stores samples.
const format = 1

// Insert stores a sample of a node. A name may have a status after a space, its label.
func Insert(i *postgrestest.Installation, node uuid.UUID, at time.Time, values map[string]float64) {
	i.Helper()
	i.Exec(`INSERT INTO {samples} (transaction_id, node_id, node_name, at, format, body, keep_until, lasting)
		VALUES (pg_current_xact_id(), $1, $2, $3, $4, $5, now() + interval '2 days', true)`, node, "node", at, format, Body(i, values))
}

// Body returns the stored form of a sample.
func Body(i *postgrestest.Installation, values map[string]float64) []byte {
	i.Helper()
	var body bytes.Buffer
	packed := gzip.NewWriter(&body)
	encoder := expfmt.NewEncoder(packed, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for key, value := range values {
		name, status, labeled := strings.Cut(key, " ")
		metric := &dto.Metric{Gauge: &dto.Gauge{Value: &value}}
		if label := "status"; labeled {
			metric.Label = []*dto.LabelPair{{Name: &label, Value: &status}}
		}
		if err := encoder.Encode(&dto.MetricFamily{Name: &name, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{metric}}); err != nil {
			i.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		i.Fatal(err)
	}
	return body.Bytes()
}
