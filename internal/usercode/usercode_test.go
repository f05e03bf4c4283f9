package usercode

import (
	"runtime"
	"strings"
	"testing"
)

func TestCallReturnsWhyAFunctionDidNotReturn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fn   func()
		want any
	}{
		"returns":                {func() {}, nil},
		"panics":                 {func() { panic("no ink") }, "no ink"},
		"exits":                  {runtime.Goexit, ErrExited},
		"panics while it exits":  {func() { defer func() { panic("no ink") }(); runtime.Goexit() }, "no ink"},
		"recovers its own panic": {func() { defer func() { _ = recover() }(); panic("no ink") }, nil},
	} {
		reason, stack := Call(test.fn)
		if reason != test.want {
			t.Errorf("%s: the reason is %v; want %v", name, reason, test.want)
		}
		if panicked := test.want == "no ink"; panicked != strings.Contains(string(stack), "usercode_test.go") {
			t.Errorf("%s: the stack is %s", name, stack)
		}
	}
}
