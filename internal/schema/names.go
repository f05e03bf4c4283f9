package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/installation"
)

// FunctionQuote delimits the bodies of functions in migrations, and FeatureQuote the
// statements of a feature in a script. No name may contain them.
const (
	FunctionQuote = "$tenure_function$"
	FeatureQuote  = "$tenure_feature$"
)

const maxIdentifier = 63 // bytes, a limit of PostgreSQL

// Names turns SQL templates into SQL for one schema and prefix. In a template, objects are
// written {nodes} or {membership:regclass}, and the channels of topics {events:channel}.
type Names struct{ schema, prefix string }

// NewNames returns the names of an installation's objects.
func NewNames(schema, prefix string) Names { return Names{schema, prefix} }

// SQL returns the statement with its objects named. Text in braces is a name if it
// consists of lower-case letters and underscores, unless it is a constant, as '{a}'.
func (n Names) SQL(template string) string {
	var sql strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		sql.WriteString(before)
		if !found {
			return sql.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		quoted := strings.HasSuffix(before, "'") && strings.HasPrefix(after, "'")
		if !closed || quoted || !isName(name) {
			sql.WriteString("{")
			template = rest
			continue
		}
		sql.WriteString(n.named(name))
		template = after
	}
}

func isName(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_:") == ""
}

func (n Names) named(name string) string {
	switch name {
	case "schema":
		return pgx.Identifier{n.schema}.Sanitize()
	case "prefix":
		return strings.ReplaceAll(n.prefix, `"`, `""`)
	case "installation:key":
		first, second := installation.LockKey(n.schema, n.prefix)
		return fmt.Sprintf("%d, %d", first, second)
	}
	if topic, isChannel := strings.CutSuffix(name, ":channel"); isChannel {
		return Literal(n.Channel(topic))
	}
	object, isLiteral := strings.CutSuffix(name, ":regclass")
	identifier := pgx.Identifier{n.schema, n.prefix + object}.Sanitize()
	if isLiteral {
		return Literal(identifier) + "::regclass"
	}
	return identifier
}

// Channel returns the name of the notification channel of a topic: the schema, the prefix
// and the topic, shortened to a digest if too long for an identifier.
func (n Names) Channel(topic string) string {
	name := n.schema + "_" + n.prefix + topic
	if len(name) <= maxIdentifier {
		return name
	}
	sum := sha256.Sum256([]byte(n.schema + "\x00" + n.prefix + topic))
	return "tenure_" + hex.EncodeToString(sum[:16])
}

// Literal quotes a string constant. Its prefix E makes it independent of
// standard_conforming_strings.
func Literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
