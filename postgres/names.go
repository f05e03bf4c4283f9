package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/installation"
)

// functionQuote delimits the bodies of functions in the migrations.
const functionQuote = "$tenure_function$"

// objects are the names of the schema's objects without their prefix, as they
// stand in braces in the SQL of this package.
var objects = []string{
	"migrations", "installation", "server", "incarnations", "membership",
	"nodes", "terms", "history", "requests", "leaders", "watch", "spreads", "autoscaling",
	"events", "processors", "dead_letters", "changes", "schedules", "runs",
	"node_history", "record_node", "term_days", "node_days", "run_days", "samples", "sample_days",
	"alert_rules", "alert_states", "alert_notifications", installation.ModeTable,
	"keep_terms",
}

// names turns the SQL of this package, in which objects stand as {nodes} or
// {membership:regclass}, into SQL for one schema and prefix.
type names struct {
	schema, prefix string
	replacer       *strings.Replacer
}

func newNames(schema, prefix string) names {
	first, second := installation.LockKey(schema, prefix)
	pairs := []string{
		"{installation:key}", fmt.Sprintf("%d, %d", first, second),
		"{schema}", pgx.Identifier{schema}.Sanitize(),
		"{prefix}", strings.ReplaceAll(prefix, `"`, `""`),
	}
	for _, object := range objects {
		name := pgx.Identifier{schema, prefix + object}.Sanitize()
		pairs = append(pairs,
			"{"+object+"}", name,
			"{"+object+":regclass}", literal(name)+"::regclass",
		)
	}
	return names{schema, prefix, strings.NewReplacer(pairs...)}
}

// SQL names the objects of the schema in a statement, which stand in braces
// there, as {terms}. It is for the packages that build on this one.
func (b *Backend) SQL(template string) string { return b.names.sql(template) }

// sql returns the statement with its objects named.
func (n names) sql(template string) string { return n.replacer.Replace(template) }

// channel is the notification channel: <schema>_<prefix>, shortened to a digest
// where that is longer than an identifier may be.
func (n names) channel() string { return n.channelFor("") }

// nodesChannel tells that nodes came, or say something else about themselves,
// which makes no role vacant.
func (n names) nodesChannel() string { return n.channelFor("nodes") }

func (n names) channelFor(topic string) string {
	name := n.schema + "_" + n.prefix + topic
	if len(name) <= maxIdentifier {
		return name
	}
	sum := sha256.Sum256([]byte(n.schema + "\x00" + n.prefix + topic))
	return "tenure_" + hex.EncodeToString(sum[:16])
}

// literal quotes a string constant; E” makes it independent of
// standard_conforming_strings.
func literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
