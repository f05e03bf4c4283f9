package acceptance_test

import (
	"os"
	"strconv"
)

// scaled is how large a test is: CI has less time than it takes to be thorough.
func scaled(variable string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return usual
}
