package metrics

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// gather returns what a node that leads so many roles measures.
func gather(t testing.TB, roles int, config Config) []*dto.MetricFamily {
	t.Helper()
	node, err := tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close(context.Background())
	for i := range roles {
		election, err := node.Election(tenure.NamedRole(fmt.Sprintf("partition-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := election.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := election.WaitForLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewElections(node, config))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func TestSamplesAreSmall(t *testing.T) {
	for roles, most := range map[int]int{10: 4 << 10, 2000: 4 << 10} { // beyond 1,000 they are summed up
		body, err := encodeSample(gather(t, roles, Config{}))
		if err != nil || len(body) > most {
			t.Errorf("%d roles take %d bytes (%v), more than %d", roles, len(body), err, most)
		}
	}
}

func TestTooLargeSamplesAreRejected(t *testing.T) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g", Help: "g"}, []string{"random"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(gauge)
	for i := range 40_000 {
		gauge.WithLabelValues(fmt.Sprintf("%x", [4]uint64{uint64(i) * 0x9E3779B97F4A7C15, uint64(i) * 0xC2B2AE3D27D4EB4F, uint64(i) * 0x165667B19E3779F9, 1}))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encodeSample(families); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "MaxRoles") {
		t.Errorf("got %v", err)
	}
}

// A few bytes can expand to many, or claim to.
func TestDecodeRejectsBombs(t *testing.T) {
	for name, bomb := range map[string]struct {
		length []byte // of the only family
		bytes  int64  // that follow
	}{
		"many bytes":     {[]byte{0x80, 0x80, 0x80, 0x40}, maxDecoded},
		"a great length": {[]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 10},
		"half a length":  {[]byte{0x80}, 0},
		"no length":      {[]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 10},
	} {
		var body bytes.Buffer
		packed := gzip.NewWriter(&body)
		if _, err := packed.Write(bomb.length); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(packed, zeros{}, bomb.bytes); err != nil {
			t.Fatal(err)
		}
		if err := packed.Close(); err != nil {
			t.Fatal(err)
		}
		if families, err := decodeSample(sampleFormat, body.Bytes()); err == nil {
			t.Errorf("%s: %d families of %d bytes", name, len(families), body.Len())
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzDecodeSample(f *testing.F) {
	body, err := encodeSample(gather(f, 1, Config{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, body []byte) {
		families, _ := decodeSample(sampleFormat, body)
		flatten(families)
	})
}

func BenchmarkSample(b *testing.B) {
	for name, bench := range map[string]struct {
		roles  int
		config Config
	}{
		"roles=10": {10, Config{}}, "roles=1000": {1000, Config{}},
		"roles=10000/summed": {10_000, Config{}}, "roles=10000/each": {10_000, Config{MaxRoles: -1}},
	} {
		families := gather(b, bench.roles, bench.config)
		body, err := encodeSample(families)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/encode", func(b *testing.B) {
			for b.Loop() {
				if _, err := encodeSample(families); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(body)), "bytes")
		})
		b.Run(name+"/decode", func(b *testing.B) {
			for b.Loop() {
				families, err := decodeSample(sampleFormat, body)
				if err != nil {
					b.Fatal(err)
				}
				flatten(families)
			}
		})
	}
}
