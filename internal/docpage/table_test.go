package docpage

import "testing"

func TestSetLineReplacesOneLineOfTheTable(t *testing.T) {
	const header = "| a | n |\n|---|---|"
	for _, test := range []struct{ table, want string }{
		{"", header + "\n| a | 2 |"},
		{"| other | header |\n|---|---|\n| a | 1 |", header + "\n| a | 2 |"},
		{header + "\n| b | 1 |", header + "\n| b | 1 |\n| a | 2 |"},
		{header + "\n| a | 1 |\n| b | 1 |", header + "\n| a | 2 |\n| b | 1 |"},
	} {
		if got := SetLine(test.table, header, "| a | 2 |", HasFirst("a")); got != test.want {
			t.Errorf("%q: got\n%s\nwant\n%s", test.table, got, test.want)
		}
	}
}
