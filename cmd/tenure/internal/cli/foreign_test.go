package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// forged is the beginning of a line that no command prints.
const forged = "FORGED"

// unseen are characters that move a cursor, end a line, turn the direction or are
// not seen. They are listed here once more, so that the program is not measured by
// its own list.
const unseen = "\x01\x07\x08\t\n\v\f\r\x1b\x7f\u0080\u0085\u008d\u0090\u009b\u009d\u009f\u00a0\u00ad\u034f\u061c\u115f\u180e" +
	"\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2066\u2067\u2068\u2069\u206a\u3164\ufe0f\ufeff\uffa0\ufff9" +
	"\U000e0001\U000e0041\U000e0100"

// hostile is a name that was written with SQL.
func hostile(mark string) string {
	return mark + "\x1b]0;title\x07\x1b[2J\u009b31m" + unseen + "\n" + forged + " line\r" + forged + "\u202eexe"
}

// checkPrintable fails the test if a text would act on a terminal.
func checkPrintable(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %q", what, text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(strings.TrimLeft(line, " "), forged) || strings.ContainsAny(line, unseen) {
			t.Errorf("%s has the line %q", what, line)
			return
		}
	}
}

// hostileNode is the node of all rows.
var hostileNode = uuid.MustParse("11111111-2222-3333-4444-555555555555")

// fitting are values for columns that do not accept every value, or whose value would
// hide other columns.
var fitting = map[string]any{
	"processors.status": "active", "alert_notifications.status": "pending", "installation.mode": "sessions", "runs.state": "failed", "alert_states.state": "firing", "nodes.status": "active",
	"schedules.expression": "* * * * *", "schedules.timezone": "UTC", "schedules.settings": "{}",
	"terms.lock_key": "1234", "terms.reserved_for": nil, "terms.reserved_until": nil, "history.end_reason": "resigned", "nodes.lease_ms": 3_600_000, "terms.lease_ms": 3_600_000,
	"terms.retired_at": nil, "terms.retired_by": "", "dead_letters.replayed_at": nil, "changes.kind": "schedule",
	"nodes.spreads": `{}`, "spreads.roles": `[]`, "alert_notifications.body": nil,
}

// fillTables writes a row with hostile texts into every table of a schema, and returns
// the text columns that have one.
func fillTables(t *testing.T, p place) map[string]bool {
	t.Helper()
	conn := p.server.Conn(t)
	rows, err := conn.Query(t.Context(), `SELECT c.table_name, c.column_name, c.data_type, c.is_nullable = 'YES'
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = $1 AND t.table_type = 'BASE TABLE' AND c.table_name NOT LIKE '%migrations' ORDER BY 1, c.ordinal_position`, p.schema)
	if err != nil {
		t.Fatal(err)
	}
	type column struct {
		Table, Name, Type string
		Nullable          bool
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		t.Fatal(err)
	}
	names, values, filled := map[string][]string{}, map[string][]any{}, map[string]bool{}
	for _, c := range columns {
		table := strings.TrimPrefix(c.Table, "tenure_")
		text := hostile(table + "." + c.Name)
		if c.Name == "name" || c.Name == "role" || c.Name == "node_name" || c.Name == "schedule" || c.Name == "processor" || c.Name == "rule" {
			text = hostile("evil") // so that rows belong together
		}
		value, fixed := fitting[table+"."+c.Name]
		if !fixed {
			switch c.Type {
			case "text":
				value, filled[c.Table+"."+c.Name] = text, true
			case "ARRAY":
				value = []string{text}
			case "jsonb":
				value = map[string]string{text: text}
			case "uuid":
				value = hostileNode
			case "boolean":
				value = c.Name == "one"
			case "timestamp with time zone", "date":
				value = pgx.NamedArgs{"raw": "now()"}
				if c.Nullable && (c.Name == "ended_at" && table == "terms" || c.Name == "died_at") {
					value = nil
				}
			case "bytea":
				value = []byte{1}
			case "interval":
				value = pgx.NamedArgs{"raw": "interval '1 second'"}
			case "xid8":
				value = pgx.NamedArgs{"raw": "'3'"}
			default:
				value = 1000 // numbers of rows that no trigger has used
			}
		}
		names[c.Table] = append(names[c.Table], pgx.Identifier{c.Name}.Sanitize())
		values[c.Table] = append(values[c.Table], value)
	}
	for table, columns := range names {
		var args []any
		var places []string
		for _, value := range values[table] {
			if raw, ok := value.(pgx.NamedArgs); ok {
				places = append(places, raw["raw"].(string))
				continue
			}
			args = append(args, value)
			places = append(places, fmt.Sprintf("$%d", len(args)))
		}
		statement := fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s) ON CONFLICT DO NOTHING",
			pgx.Identifier{p.schema, table}.Sanitize(), strings.Join(columns, ", "), strings.Join(places, ", "))
		pgtest.Exec(t, conn, statement, args...)
	}
	pgtest.Exec(t, conn, fmt.Sprintf(`INSERT INTO %s (changed_by, kind, name, action, detail)
		SELECT changed_by, 'processor', name, action, detail FROM %[1]s`, pgx.Identifier{p.schema, "tenure_changes"}.Sanitize()))
	return filled
}

// printingRuns are command lines for every command that prints what it has read. Those
// that change something come last.
func printingRuns(p place) []printingRun {
	evil, id := hostile("evil"), hostileNode.String()
	show := func(args ...string) printingRun { return printingRun{args: p.with(args...), shows: true} }
	try := func(args ...string) printingRun { return printingRun{args: p.with(args...)} }
	return []printingRun{
		show("status"), show("cluster", "status"), show("node", "list"), show("node", "show", id),
		show("history"), show("history", "--nodes"), show("history", "--days", "roles"), show("history", "--days", "schedules"), show("audit"),
		show("cron", "list"), show("cron", "history", evil), {args: p.with("cron", "history", "--run", "1000"), shows: true, lines: true}, try("cron", "next", evil),
		show("processor", "list"), show("processor", "show", evil), try("processor", "lag"),
		show("processor", "dead-letters", evil),
		show("alerts", "list"), show("alerts", "silences", "--all"), show("alerts", "history"), try("alerts", "export"),
		try("alerts", "silence", evil, "--for", "1h", "--comment", evil), try("alerts", "silence", "--match", "role="+evil, "--for", "1h"),
		try("alerts", "unsilence", evil), try("alerts", "unsilence", "1000"), try("alerts", "acknowledge", evil, "--for", "1h"),
		try("alerts", "test", evil, "--incident", "current"), try("__complete", "alerts", "silence", ""), try("doctor"),
		try("rebalance", "--dry-run"), try("migrate", "version"),
		{args: p.with("observe", "--check-interval", "100ms"), shows: true, endless: true},
		try("status", "--role", evil), try("step-down", "--role", evil, "--timeout", "1s"), try("retire", "--role", evil, "--yes"), try("retire", "--match", "*", "--dry-run"),
		try("role", "rekey", evil, "--yes"), try("top"), {args: p.with("status", "--watch"), shows: true, endless: true},
		try("acquire", "--role", "evil"), try("step-down", "--role", "evil", "--to", evil, "--timeout", "1s"),
		try("node", "show", evil), try("node", "drain", evil, "--timeout", "1s"), try("node", "undrain", evil), try("node", "forget", evil, "--yes"),
		try("cron", "pause", evil), try("cron", "resume", evil), try("cron", "trigger", evil),
		try("cron", "change", evil, "--tz", "UTC"), try("cron", "reset", evil), try("cron", "add", "extra", "--job", evil, "--expr", "@daily"),
		try("cron", "backfill", evil, "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T00:05:00Z"),
		try("processor", "pause", evil), try("processor", "resume", evil), try("processor", "skip", evil, "--at", "3:1"),
		try("processor", "replay", evil), try("processor", "dismiss", evil, "--all"), try("processor", "rewind", evil, "--to", "0:0", "--yes"), try("processor", "rebuild", evil, "--yes"),
		try("processor", "repair", evil, "--yes"), try("processor", "retry", evil),
		try("cron", "remove", evil, "--yes"), try("alerts", "test", evil), try("config", "check", evil),
		try("health", "--url", evil), try("version", evil), try("config", "show", "--name", evil),
		try("__complete", "status", "--role", ""), try("__complete", "node", "show", ""), try("__complete", "cron", "pause", ""),
		try("__complete", "processor", "pause", ""), try("__complete", "step-down", "--to", ""),
		{args: p.with("run", "--role", "evil", "--name", "x"), endless: true},
		try("migrate", "mode", "leases", "--yes"), try("migrate", "down", "--to", "0", "--yes"),
		{args: p.with("cron", "run", "--schedule", "* * * * *", "--name", evil, "--", "true")},
	}
}

// printingRun is one command line.
type printingRun struct {
	args    []string
	shows   bool // prints the hostile name in the end
	endless bool // until a signal
	lines   bool // prints only the lines that a job has written
}

// printsNothingForeign are the commands that no run of [printingRuns] is for, with
// the reason.
var printsNothingForeign = map[string]string{
	"tenure":                       "help",
	"tenure help":                  "help",
	"tenure cluster":               "help",
	"tenure node":                  "help",
	"tenure role":                  "help",
	"tenure cron":                  "help",
	"tenure processor":             "help",
	"tenure alerts":                "help",
	"tenure config":                "help",
	"tenure manual":                "writes help to files",
	"tenure completion":            "help",
	"tenure completion bash":       "its own script",
	"tenure completion zsh":        "its own script",
	"tenure completion fish":       "its own script",
	"tenure completion powershell": "its own script",
	"tenure demo":                  "has its own database",
	"tenure demo-node":             "prints for tenure demo",
	"tenure serve":                 "prints its address; what it serves is tested in internal/sidecar and dashboard",
	"tenure serve password":        "prints the name that it was given, quoted",
	"tenure migrate":               "prints versions",
	"tenure migrate print":         "its own script",
	"tenure migrate grants":        "its own script",
	"tenure migrate up":            "prints versions",
	"tenure agent":                 "prints nothing but its log",
	"tenure proxy":                 "prints its own address and the role that it was given",
	"tenure migrate status":        "prints versions",
}

// Whatever is written into the tables, no command prints a character that
// controls a terminal.
func TestForeignTextIsPrintable(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	ran := map[string]bool{}
	root := wholeTree()
	root.InitDefaultCompletionCmd("x")
	root.InitDefaultHelpCmd()
	for _, format := range []string{"text", "json"} {
		p := newPlace(t)
		invoke(t, p.with("migrate", "up", "--feature", "all")...).want(t, console.ExitDone)
		if filled := fillTables(t, p); len(filled) < 40 {
			t.Fatalf("only %d columns of texts were filled", len(filled))
		}
		checkForeignTrigger(t, format, ran)
		for _, r := range printingRuns(p) {
			if found, _, err := root.Find(r.args); err == nil && !found.HasSubCommands() {
				ran[found.CommandPath()] = true
			}
			name := strings.Join(r.args[:2], " ") + " as " + format
			got := r.invoke(t, format)
			checked := got.stdout
			if r.lines && format == "text" {
				checked = strings.NewReplacer("\t", "", forged, "").Replace(checked)
			}
			checkPrintable(t, name+": standard output", checked)
			checkPrintable(t, name+": standard error", got.stderr)
			if r.shows && !strings.Contains(got.stdout, forged) {
				t.Errorf("%s does not show the row: %q %q", name, got.stdout, got.stderr)
			}
		}
	}
	checkAllRan(t, root, ran)
}

// checkForeignTrigger has a trigger found whose name would act on a terminal.
func checkForeignTrigger(t *testing.T, format string, ran map[string]bool) {
	t.Helper()
	p := newPlace(t)
	invoke(t, p.with("migrate", "up")...).want(t, console.ExitDone)
	function, trigger := pgx.Identifier{p.schema, "strange"}.Sanitize(), pgx.Identifier{"evil\x1b[2J\u202e\n" + forged}.Sanitize()
	pgtest.Exec(t, p.server.Conn(t), fmt.Sprintf(`CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER %[2]s BEFORE UPDATE ON %[3]s FOR EACH ROW EXECUTE FUNCTION %[1]s()`, function, trigger, pgx.Identifier{p.schema, "tenure_terms"}.Sanitize()))
	for i, args := range [][]string{{"doctor"}, {"migrate", "repair", "--dry-run"}, {"migrate", "repair", "--yes"}, {"doctor"}} {
		got := invoke(t, append([]string{"-o", format}, p.with(args...)...)...)
		checkPrintable(t, strings.Join(args, " ")+" as "+format, got.stdout+got.stderr)
		if shown := strings.Contains(got.stdout+got.stderr, forged); shown == (i == 3) {
			t.Errorf("%v as %s: %q %q", args, format, got.stdout, got.stderr)
		}
		ran["tenure "+strings.Join(args[:min(2, len(args))], " ")] = true
	}
}

// checkAllRan fails the test if there is a command that was not run, and no reason
// why not.
func checkAllRan(t *testing.T, cmd *cobra.Command, ran map[string]bool) {
	path := cmd.CommandPath()
	if _, listed := printsNothingForeign[path]; ran[path] == listed {
		t.Errorf("%s: run it with hostile names, or give the reason why it prints none (run: %v, reason: %v)", path, ran[path], listed)
	}
	for _, below := range cmd.Commands() {
		checkAllRan(t, below, ran)
	}
}

// invoke runs the command until it ends or, if it runs endlessly, until its first line.
func (r printingRun) invoke(t *testing.T, format string) result {
	t.Helper()
	args := r.args
	if args[0] != "__complete" {
		args = append([]string{"-o", format}, args...)
	}
	if !r.endless {
		return invoke(t, args...)
	}
	p := launch(t, args...)
	line, _ := p.line()
	p.signal(syscall.SIGTERM)
	got := result{stdout: line + "\n"}
	for more := range p.lines {
		got.stdout += more + "\n"
	}
	p.exit()
	got.stderr = p.log()
	return got
}
