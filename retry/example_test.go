package retry_test

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/retry"
)

// The delay doubles from Base to Max.
func ExampleExponentialBackoff() {
	backoff := retry.ExponentialBackoff{Base: 100 * time.Millisecond, Max: time.Second}
	for attempt := 1; attempt <= 5; attempt++ {
		delay, _ := backoff.NextDelay(retry.Failure{Attempt: attempt})
		fmt.Println(delay)
	}
	// Output:
	// 100ms
	// 200ms
	// 400ms
	// 800ms
	// 1s
}
