package flagvalue

import (
	"errors"
	"fmt"
	"strconv"
)

// Number is a flag for an integer from a minimum to a maximum. The default may be less.
type Number struct{ Value, Least, Most int }

// Set implements pflag.Value.
func (n *Number) Set(s string) error {
	value, err := strconv.Atoi(s)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (value < n.Least || value > n.Most):
		return fmt.Errorf("it must be between %d and %d", n.Least, n.Most)
	case err != nil:
		return errors.New("it must be an integer")
	}
	n.Value = value
	return nil
}

func (n *Number) String() string { return strconv.Itoa(n.Value) }

// Type implements pflag.Value.
func (n *Number) Type() string { return "number" }
