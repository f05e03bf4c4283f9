package schema

import (
	"strings"
	"testing"
)

func TestSQLQuotesNames(t *testing.T) {
	t.Parallel()
	n := NewNames("s", `o'd "`)
	for template, want := range map[string]string{
		"SELECT FROM {nodes}, {terms}":               `SELECT FROM "s"."o'd ""nodes", "s"."o'd ""terms"`,
		"CREATE INDEX {schema}.\"{prefix}at\"":       `CREATE INDEX "s"."o'd ""at"`,
		"nextval({membership:regclass})":             `nextval(E'"s"."o''d ""membership"'::regclass)`,
		"EXECUTE FUNCTION {hook}({events:channel})":  `EXECUTE FUNCTION "s"."o'd ""hook"(E's_o''d "events')`,
		"'{watch}(integer)'::regprocedure":           `'"s"."o'd ""watch"(integer)'::regprocedure`,
		"'{}' '{hook}' '{SCHEMA,TABLE}' '{\"a\": 1}": `'{}' '{hook}' '{SCHEMA,TABLE}' '{"a": 1}`,
		"{unclosed {nodes":                           "{unclosed {nodes",
		"{ {nodes} }":                                `{ "s"."o'd ""nodes" }`,
	} {
		if got := n.SQL(template); got != want {
			t.Errorf("%s: %s; want %s", template, got, want)
		}
	}
}

// TestChannelFitsIdentifier: PostgreSQL rejects the names of longer channels.
func TestChannelFitsIdentifier(t *testing.T) {
	t.Parallel()
	if got := NewNames("s", "tenure_").Channel("nodes"); got != "s_tenure_nodes" {
		t.Errorf("the channel is %s", got)
	}
	long := strings.Repeat("s", 40)
	channels := map[string]bool{}
	for _, names := range []Names{NewNames(long, "tenure_of_the_installation_"), NewNames(long+"tenure_", "of_the_installation_")} {
		for _, topic := range []string{"", "nodes", "events"} {
			channel := names.Channel(topic)
			if len(channel) > maxIdentifier {
				t.Errorf("the channel %s has %d bytes; want at most %d", channel, len(channel), maxIdentifier)
			}
			channels[channel] = true
		}
	}
	if len(channels) != 6 {
		t.Errorf("6 topics share %d channels", len(channels))
	}
}
