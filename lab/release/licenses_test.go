package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestLicensesOfModulesAreRequired(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var out bytes.Buffer
	if err := writeLicenses(&out, "example.com/m v1.0.0", folder); err == nil || !strings.Contains(err.Error(), "example.com/m v1.0.0 has no license") {
		t.Errorf("error %v; want one that names the module", err)
	}
	for _, name := range []string{"LICENSE-BSD", "copying.txt", "NOTICE", "licensing.go.d/x", "main.go"} {
		put(t, folder, name, "text of "+name+"\n")
	}
	if err := writeLicenses(&out, "example.com/m v1.0.0", folder); err != nil {
		t.Fatal(err)
	}
	want := "==== example.com/m v1.0.0: LICENSE-BSD ====\n\ntext of LICENSE-BSD\n\n" +
		"==== example.com/m v1.0.0: NOTICE ====\n\ntext of NOTICE\n\n" +
		"==== example.com/m v1.0.0: copying.txt ====\n\ntext of copying.txt\n\n"
	if got := out.String(); got != want {
		t.Errorf("the licenses are:\n%s\nwant:\n%s", got, want)
	}
}
