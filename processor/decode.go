package processor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// decode reads the events of a result in PostgreSQL's binary format. The
// general decoder took half of the time of a busy processor.
func decode(rows pgx.Rows, limit int) ([]Event, error) {
	defer rows.Close()
	events := make([]Event, 0, min(limit, 1024))
	types := map[string]string{}
	for rows.Next() {
		events = append(events, Event{})
		if err := decodeEvent(rows.RawValues(), types, &events[len(events)-1]); err != nil {
			return nil, err
		}
	}
	return events, rows.Err()
}

// errFormat is returned if a row does not match the protocol.
var errFormat = errors.New("a row of the log has an unknown format")

// epoch is time zero of PostgreSQL's timestamps. They count microseconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// decodeEvent reads an event from its columns. Events of one type share the
// type's string.
func decodeEvent(columns [][]byte, types map[string]string, e *Event) error {
	const number = 8
	if len(columns) != 8 || len(columns[0]) != number || len(columns[1]) != number {
		return errFormat
	}
	e.Transaction = binary.BigEndian.Uint64(columns[0])
	e.Position = int64(binary.BigEndian.Uint64(columns[1]))
	known, found := types[string(columns[2])]
	if !found {
		known = string(columns[2])
		types[known] = known
	}
	e.Type = known
	var err error
	if e.Tags, err = decodeTexts(columns[3]); err != nil {
		return err
	}
	if document := columns[4]; len(document) > 0 { // a version byte, then the text
		e.Data = append(json.RawMessage(nil), document[1:]...)
	}
	if occurred := columns[5]; len(occurred) == number {
		e.OccurredAt = instant(int64(binary.BigEndian.Uint64(occurred)))
	}
	copy(e.Correlation[:], columns[6])
	copy(e.Causation[:], columns[7])
	return nil
}

// instant converts microseconds since the epoch to a time.
func instant(microseconds int64) time.Time {
	const second = 1_000_000
	return time.Unix(epoch.Unix()+microseconds/second, microseconds%second*1000)
}

// decodeTexts reads an array of texts: the number of dimensions, a NULL flag,
// the element type, size and lower bound of each dimension, then the elements.
func decodeTexts(array []byte) ([]string, error) {
	const header, dimension, length = 12, 8, 4
	if len(array) < header {
		if len(array) == 0 {
			return nil, nil
		}
		return nil, errFormat
	}
	count := 0
	if dimensions := int(binary.BigEndian.Uint32(array)); dimensions == 1 && len(array) >= header+dimension {
		count = int(binary.BigEndian.Uint32(array[header:]))
		array = array[header+dimension:]
	} else if dimensions != 0 {
		return nil, errFormat
	}
	// One string holds all elements.
	all := string(array)
	if count > len(all)/length {
		return nil, errFormat
	}
	texts := make([]string, 0, count)
	for at := 0; len(texts) < count; {
		if len(array)-at < length {
			return nil, errFormat
		}
		size := int(int32(binary.BigEndian.Uint32(array[at:])))
		at += length
		if size < 0 { // NULL
			texts = append(texts, "")
			continue
		}
		if size > len(array)-at {
			return nil, errFormat
		}
		texts = append(texts, all[at:at+size])
		at += size
	}
	return texts, nil
}
