package lease

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

func TestConfigRejectsInvalidTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config Config
		good   bool
	}{
		"defaults":              {Config{}, true},
		"no time between polls": {Config{PollInterval: time.Millisecond - 1}, false},
		"no poll within a life": {Config{PollInterval: math.MaxInt64}, false}, // the next one would be in the past
		"history for ever":      {Config{KeepHistory: -1}, true},
		"history for minutes":   {Config{KeepHistory: time.Hour - 1}, false},
		"history for very long": {Config{KeepHistory: math.MaxInt64}, true},
	} {
		err := test.config.withDefaults(sqldb.SQLite).validate(sqldb.SQLite)
		if good := err == nil; good != test.good || !good && !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
