package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// quoted is a text as a basic string of TOML.
func quoted(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r < ' ' || r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// Quote returns a text as a string of the file without references to the environment.
func Quote(s string) string { return strings.ReplaceAll(quoted(s), "${", "$${") }

// literal formats a value in the syntax of the file.
func literal(value any) string {
	switch value := value.(type) {
	case string:
		return quoted(value)
	case []string:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = quoted(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case time.Duration:
		return quoted(WrittenDuration(value))
	case int64:
		return strconv.FormatInt(value, 10)
	default:
		return fmt.Sprint(value)
	}
}
