package dialects

import (
	"fmt"
	"os"
)

// childVariable makes the test's program do something else.
const childVariable = "TENURE_DIALECTS_CHILD"

// child is what a process does that a test has started; it returns its exit code.
func child(role string) int {
	fmt.Fprintf(os.Stderr, "there is no role %q\n", role)
	return 2
}
