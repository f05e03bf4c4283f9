package observer

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/postgres"
)

// object is a JSON object.
type object = map[string]any

// The names of keys: words in lower case, the unit of a duration is the second, and one
// name for each thing.
var (
	keyForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	keyUnit = regexp.MustCompile(`_(ms|us|ns|millis|secs?|minutes|hours)$|^(duration|timeout|interval|lease|uptime|lasted|age|delay)$`)
	keyName = map[string]string{
		"by": "requested_by", "asked_by": "requested_by", "status_by": "requested_by", "began": "began_at", "ended": "ended_at", "acquired_at": "began_at",
		"at": "time", "host": "hostname", "zone": "timezone", "cpu_percent": "cpu_usage", "memory_percent": "memory_usage",
	}
	// userKeys are objects whose keys are names that users give.
	userKeys = []string{"labels", "annotations", "spreads", "match"}
	dated    = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d`)
)

// dialect returns what a JSON value has that is not of the one dialect.
func dialect(value any, path string) (faults []string) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			faults = append(faults, dialect(one, path+"[]")...)
		}
	case object:
		if v["state"] != nil && v["status"] != nil {
			faults = append(faults, path+" has both state and status")
		}
		for key, one := range v {
			place := path + "." + key
			switch better, forbidden := keyName[key]; {
			case !keyForm.MatchString(key):
				faults = append(faults, place+" is not in snake_case")
			case keyUnit.MatchString(key):
				faults = append(faults, place+" is a duration that does not end in _seconds")
			case forbidden:
				faults = append(faults, place+" is "+better+" elsewhere")
			}
			if _, number := one.(float64); number && strings.HasSuffix(key, "_at") {
				faults = append(faults, place+" is a time that is not in RFC 3339")
			}
			if !slices.Contains(userKeys, key) {
				faults = append(faults, dialect(one, place)...)
			}
		}
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); err != nil && dated.MatchString(v) && len(v) < 36 {
			faults = append(faults, path+" is not in RFC 3339: "+v)
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// speaks checks the dialect of an answer, whatever a scenario reads.
func (s *scene) speaks(text []byte) {
	s.Helper()
	var value any
	if json.Unmarshal(text, &value) != nil {
		return
	}
	for _, fault := range dialect(value, "") {
		s.Errorf("another dialect: %s", fault)
	}
}

// door is a record as one of the doors shows it.
type door struct {
	where  string
	record object
}

// printed is a record of a command's output, and served one of an HTTP answer. path leads
// to it: keys of objects, and "key=value" for an element of a list.
func (s *scene) printed(path string, args ...string) door {
	s.Helper()
	var all object
	s.json(&all, args...)
	return door{strings.Join(args, " "), s.within(all, path)}
}

func (s *scene) served(path, address string) door {
	s.Helper()
	var all object
	s.page(&all, address)
	return door{strings.Split(address, "?")[0], s.within(all, path)}
}

func (s *scene) within(from any, path string) object {
	s.Helper()
	for _, step := range strings.Fields(path) {
		key, value, element := strings.Cut(step, "=")
		if !element {
			whole, _ := from.(object)
			from = whole[key]
			continue
		}
		all, _ := from.([]any)
		at := slices.IndexFunc(all, func(one any) bool { o, _ := one.(object); return asText(o[key]) == value })
		if at < 0 {
			s.Fatalf("nothing has %s in %v", step, from)
		}
		from = all[at]
	}
	found, ok := from.(object)
	if !ok {
		s.Fatalf("no object at %s: %v", path, from)
	}
	return found
}

// asText is a value as a path has it.
func asText(value any) string {
	if number, ok := value.(float64); ok {
		return fmt.Sprintf("%.0f", number)
	}
	return fmt.Sprint(value)
}

// agree compares what doors show of the same thing: all have the keys, and a key of
// several doors has one value, unless the value moves between two reads.
func (s *scene) agree(what, keys, moving string, doors ...door) {
	s.Helper()
	for _, d := range doors {
		for _, key := range strings.Fields(keys) {
			_, has := d.record[key]
			s.equal(d.where, what+" has "+key, has, true)
		}
	}
	seen := map[string]door{} // the first one that has a key
	for _, d := range doors {
		for key, value := range d.record {
			first, has := seen[key]
			switch {
			case !has:
				seen[key] = d
			case !slices.Contains(strings.Fields(moving), key):
				truth := first.record[key]
				s.compare(d.where, what+", "+key+" as in "+first.where, fmt.Sprintf("%#v", value), fmt.Sprintf("%#v", truth), "equal", same(truth, value))
			}
		}
	}
}

// same compares two values. Times may have different offsets, and durations differ by
// less than a microsecond.
func same(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		first, problem := time.Parse(time.RFC3339Nano, x)
		second, err := time.Parse(time.RFC3339Nano, y)
		return ok && (x == y || problem == nil && err == nil && first.Equal(second) || plain(y) == x)
	case float64:
		y, ok := b.(float64)
		return ok && math.Abs(x-y) < 1.5e-6
	case object:
		y, ok := b.(object)
		for key, value := range x {
			if other, has := y[key]; has && !same(value, other) {
				return false
			}
		}
		return ok
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	}
	return reflect.DeepEqual(a, b)
}

const alwaysRule = `
[[alerts]]
name = "led_roles"
condition = "count(tenure_leader_is_leader) > 0"
severity = "info"
labels = { team = "shop" }
annotations = { summary = "a role is led" }
`

// oneDialect causes something of each kind, and reads it from all doors.
func oneDialect(s *scene) {
	file, jobs, refuses := filepath.Join(s.TempDir(), "tenure.toml"), filepath.Join(s.TempDir(), "jobs.toml"), filepath.Join(s.TempDir(), "refuses")
	for path, text := range map[string]string{file: alwaysRule, jobs: "[[cron]]\nname = \"good\"\nschedule = \"30 2 1 1 *\"\ncommand = \"echo well\"\n", refuses: ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.serve("--config", file)
	first := s.lead("a", "billing", "--listen", "127.0.0.1:0")
	next := s.standby("b", "billing", "--listen", "127.0.0.1:0")
	first.kill()
	next.leads("billing")
	s.standby("c", "billing", "--listen", "127.0.0.1:0")
	s.tenure("step-down", "--role", "billing")
	s.tenure("node", "drain", "b")
	s.handleWork(jobs, refuses)
	s.eventually("the page shows all of it", func() bool {
		now := s.now()
		drained := slices.ContainsFunc(now.Now.Nodes, func(n nodeOnPage) bool { return n.Name == "b" && n.Drained })
		found := func(kind string) bool {
			return slices.ContainsFunc(now.Incidents, func(i incidentOnPage) bool { return i.Kind == kind && i.Ended != nil })
		}
		return s.lettersOnPage() == 3 && len(now.Work.Schedules) == 1 && now.Work.Schedules[0].Last.State == "succeeded" && now.Now.Firing == 1 &&
			drained && found("crash") && found("change") && s.failovers("billing", 2).Total == 2
	})

	s.agree("role", "role state", "", s.printed("roles role=billing", "status", "--role", "billing"), s.served("rows role=billing", "/api/roles"), s.served("role", "/api/role?name=billing"))
	s.agree("leader", "term node node_name hostname began_at", "lease_until valid_seconds",
		s.printed("roles role=billing leader", "status", "--role", "billing"), s.served("leader", "/v1/leaders/billing"), s.served("leaders role=billing leader", "/v1/leaders"),
		s.served("role", "/api/role?name=billing"), s.served("rows role=billing", "/api/roles"))
	terms := s.history("billing")
	for i, t := range terms {
		at := fmt.Sprint(" term=", t.Term)
		s.agree(fmt.Sprint("term ", i+1), "term node node_name began_at ended_at end_reason requested_by vacant_seconds silent_seconds", "",
			s.printed("terms"+at, "history", "--role", "billing"), s.served("rows"+at, "/api/terms?role=billing"))
	}
	for _, kind := range []string{"crash", "change"} {
		printed := s.printed("incidents kind="+kind, "history", "--incidents")
		page := s.served("", "/api/incident?id="+fmt.Sprint(printed.record["id"]))
		s.agree("incident "+kind, "id kind unplanned began_at ended_at lasted_seconds sentence requested_by nodes moves", "", printed, page)
		s.agree("incident "+kind, "id kind unplanned began_at ended_at lasted_seconds sentence requested_by nodes", "", printed, s.served("rows kind="+kind, "/api/incidents"))
		printed.record, page.record = s.within(printed.record, "moves role=billing"), s.within(page.record, "moves role=billing")
		s.agree("move of "+kind, "role from to began_at ended_at end_reason requested_by without_leader_seconds vacant_seconds silent_seconds blocked_by", "", printed, page)
	}
	for _, name := range []string{"a", "b", "c"} {
		moving := "last_heartbeat silent_seconds uptime_seconds load cpu_usage memory_usage"
		if name != "a" {
			moving += " status" // the page shows one without a timely heartbeat as silent
		}
		s.agree("node "+name, "id name hostname status requested_by drained node_roles labels address version started_at last_heartbeat lease_seconds in_flight", moving,
			s.printed("nodes name="+name, "node", "list"), s.served("nodes name="+name, "/v1/nodes"), s.served("nodes name="+name, "/v1/cluster"), s.printed("nodes name="+name, "cluster", "status"),
			s.served("rows name="+name, "/api/nodes"), s.served("now nodes name="+name, "/api/now"))
	}
	s.agree("cluster", "counts leaders name nodes unplaced", "nodes leaders", s.printed("", "cluster", "status"), s.served("", "/v1/cluster"))
	s.agree("schedule", "schedule status expression timezone role loaded paused next last failures", "", s.printed("schedules schedule=good", "cron", "list"),
		s.served("schedules schedule=good", "/v1/schedules"), s.served("work schedules schedule=good", "/api/now"))
	run := s.printed("runs schedule=good", "cron", "history")
	number := asText(run.record["run"])
	s.agree("run", "run schedule scheduled_for state term node node_name requested_by started_at ended_at output_bytes", "", run, s.served("runs schedule=good", "/v1/schedules/good/runs"),
		s.served("runs schedule=good", "/api/schedule?name=good"), s.served("", "/api/run?id="+number))
	s.agree("processor", "processor kind role status node_name led processed behind errors dead_letters", "updated_at busy",
		s.printed("processors processor=mails", "processor", "list"), s.served("processors processor=mails", "/v1/processors"), s.served("work processors processor=mails", "/api/now"))
	s.agree("lag", "processor led behind more held waiting_seconds as_of", "age_seconds as_of", s.printed("processors processor=mails", "processor", "lag"),
		s.served("processors processor=mails", "/v1/processor-lag"), s.served("lag", "/api/processor?name=mails"))
	letter := s.letters().Letters[0]
	at := fmt.Sprint("dead_letters id=", letter.ID)
	s.agree("dead letter", "id event error attempts term failed_at replay", "", s.printed(at, "processor", "dead-letters", "mails"),
		s.served(at, "/v1/processors/mails/dead-letters"), s.served(at, "/api/processor?name=mails"))
	s.agree("change", "time requested_by name action", "", s.printed("actions action=pause", "audit"),
		s.served("actions action=pause", "/v1/audit"), s.served("changes action=pause", "/api/processor?name=mails"))
	s.agree("action", "time requested_by kind name action result", "", s.printed("actions action=drain", "audit"),
		s.served("actions action=drain", "/v1/audit"), s.served("rows action=drain", "/api/audit"))
	var rules object
	s.decode([]byte(s.tenureServer("alerts", "list", "-o", "json")), &rules)
	listed := door{"alerts list", s.within(rules, "alerts name=led_roles")}
	s.agree("alert", "name state severity labels", "labels", listed, s.served("alerts name=led_roles", "/api/now"))
	for _, path := range []string{
		"/v1/elections", "/v1/openapi.json", "/api/events", "/api/failovers", "/api/timeline?role=billing", "/api/lanes", "/api/graphs?range=1h", "/api/session",
		"/api/node?id=" + url.QueryEscape(fmt.Sprint(s.printed("nodes name=c", "node", "list").record["id"])),
	} {
		if status, body := s.get(s.server + path); status == 200 && path != "/v1/openapi.json" {
			s.speaks(body)
		} else if status != 200 {
			s.Errorf("%s answered %d: %s", path, status, body)
		}
	}
	for _, args := range [][]string{{"history", "--nodes"}, {"history", "--outages"}, {"doctor"}, {"migrate", "status"}, {"config", "show"}} {
		out, _, _ := s.invoke(append(args, "-o", "json")...)
		s.speaks([]byte(out))
	}
}

// handleWork lets a processor refuse three events, pauses and resumes it, and runs a schedule.
func (s *scene) handleWork(jobs, refuses string) {
	s.Helper()
	p := s.work(worker{Name: "mailer-1", Processor: "mails", Refuses: refuses})
	launch(s.T, "cron-1", program("tenure"), nil, "cron", "run", "--config", jobs, "--dsn", s.dsn, "--name", "cron-1", "--lease", lease.String())
	db, err := postgres.New(s.dsn, postgres.Config{})
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	began := time.Now()
	if err := eventstore.New(db, eventstore.Config{}).Append(s.Context(), s.pool, []eventstore.NewEvent{{Type: "one", Data: 1}, {Type: "two", Data: 2}, {Type: "three", Data: 3}}...); err != nil {
		s.Fatal(err)
	}
	p.await("refused", "three", began)
	s.eventually("three dead letters", func() bool { return len(s.letters().Letters) == 3 })
	s.tenure("processor", "pause", "mails", "--by", "anna")
	s.tenure("processor", "resume", "mails", "--by", "anna")
	s.eventually("the schedule is loaded", func() bool {
		out, _, code := s.invoke("cron", "list")
		return code == 0 && part(out, "(good)") != ""
	})
	s.tenure("cron", "trigger", "good", "--by", "anna")
	s.eventually("the run has ended", func() bool { return strings.Contains(s.tenure("cron", "history"), "succeeded") })
}
