package metrics

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/exactly-one/tenure"
)

// sampleFormat is the format of encodeSample: length-delimited metric families
// in the protocol buffers of Prometheus, without help texts, compressed.
const sampleFormat int16 = 1

const (
	// maxSample limits the size of a node's sample, written every few seconds.
	maxSample = 1 << 20
	// maxDecoded limits the size of a decompressed sample.
	maxDecoded = 64 << 20
)

func encodeSample(families []*dto.MetricFamily) ([]byte, error) {
	var body bytes.Buffer
	packed, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // fails only for unknown levels
	encoder := expfmt.NewEncoder(packed, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, family := range families {
		// The family may be shared: leave out the help in a copy.
		bare := &dto.MetricFamily{Name: family.Name, Type: family.Type, Metric: family.Metric}
		if err := encoder.Encode(bare); err != nil {
			return nil, fmt.Errorf("encode %s: %w", family.GetName(), err)
		}
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	if body.Len() > maxSample {
		return nil, fmt.Errorf("%w: the sample has %d bytes; it must have at most %d: reduce the number of roles with their own series, with Config.MaxRoles",
			tenure.ErrInvalidConfig, body.Len(), maxSample)
	}
	return body.Bytes(), nil
}

func decodeSample(format int16, body []byte) ([]*dto.MetricFamily, error) {
	if format != sampleFormat {
		return nil, fmt.Errorf("the sample has format %d and this program reads format %d: use a newer release of the program", format, sampleFormat)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("decode a sample: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(unpacked, maxDecoded+1))
	if err == nil {
		err = checkLengths(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("decode a sample: %w", err)
	}
	decoder := expfmt.NewDecoder(bytes.NewReader(raw), expfmt.NewFormat(expfmt.TypeProtoDelim))
	var families []*dto.MetricFamily
	for {
		family := &dto.MetricFamily{}
		if err := decoder.Decode(family); errors.Is(err, io.EOF) {
			return families, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode a sample: %w", err)
		}
		families = append(families, family)
	}
}

// checkLengths rejects wrong lengths of families: the decoder would trust them.
func checkLengths(raw []byte) error {
	if len(raw) > maxDecoded {
		return fmt.Errorf("it has more than %d bytes", maxDecoded)
	}
	for len(raw) > 0 {
		size, n := binary.Uvarint(raw)
		if n <= 0 || size > uint64(len(raw)-n) {
			return io.ErrUnexpectedEOF
		}
		raw = raw[n+int(size):]
	}
	return nil
}
