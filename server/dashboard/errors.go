package dashboard

import (
	"errors"
	"fmt"

	"github.com/exactly-one/tenure"
)

// ErrNoAlert is the error of [Config.HandleAlert] if no alert of the request fires.
var ErrNoAlert = errors.New("no such alert fires")

// ErrNoAccess reports a user known to the site of a [SignOn] and without access to the
// dashboard; errors.Is finds it.
var ErrNoAccess = errors.New("the user has no access to the dashboard")

// errUnknown is the error for an unknown name.
var errUnknown = errors.New("there is nothing of this name")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
