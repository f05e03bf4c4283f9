package dialects

import (
	"fmt"
	"os"
)

// childVariable makes the test's program run as a child, and orderVariable has the settings
// of the child.
const (
	childVariable = "TENURE_DIALECTS_CHILD"
	orderVariable = "TENURE_DIALECTS_ORDER"
)

// child runs a child process and returns its exit code.
func child(role string) int {
	var err error
	switch role {
	case childStands, childWrites:
		err = nodeChild(role)
	case childMounts:
		err = mountChild()
	case childFills:
		err = fillChild()
	case childMigrates:
		err = migrateChild()
	case childElects:
		err = electChild()
	default:
		fmt.Fprintf(os.Stderr, "there is no role %q\n", role)
		return 2
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "child: %v\n", err)
		return 1
	}
	return 0
}
