package main

import (
	"errors"
	"fmt"
	"strconv"
)

// number is a flag that reads an integer from 0 to a bound.
type number struct{ value, most int }

// Set implements pflag.Value.
func (n *number) Set(s string) error {
	value, err := strconv.Atoi(s)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (value < 0 || value > n.most):
		return fmt.Errorf("it must be between 0 and %d", n.most)
	case err != nil:
		return errors.New("it must be an integer")
	}
	n.value = value
	return nil
}

func (n *number) String() string { return strconv.Itoa(n.value) }

// Type implements pflag.Value.
func (n *number) Type() string { return "number" }
