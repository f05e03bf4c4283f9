package main

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/exactly-one/tenure/metrics"
)

// The parts of Grafana's dashboards that are used here.
type dashboard struct {
	Title         string     `json:"title"`
	UID           string     `json:"uid"`
	Description   string     `json:"description"`
	Tags          []string   `json:"tags"`
	SchemaVersion int        `json:"schemaVersion"`
	Editable      bool       `json:"editable"`
	Refresh       string     `json:"refresh"`
	Time          timeRange  `json:"time"`
	Templating    templating `json:"templating"`
	Panels        []panel    `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

// variable is something that people choose at the top of the page.
type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      string      `json:"query"`
	Datasource *datasource `json:"datasource,omitempty"`
	Current    *option     `json:"current,omitempty"`
	Refresh    int         `json:"refresh,omitempty"` // 2 is whenever the range of time changes
	IncludeAll bool        `json:"includeAll,omitempty"`
	Multi      bool        `json:"multi,omitempty"`
	AllValue   string      `json:"allValue,omitempty"`
}

type option struct {
	Text  string `json:"text"`
	Value string `json:"value"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int             `json:"id"`
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description,omitempty"`
	GridPos     position        `json:"gridPos"`
	Datasource  *datasource     `json:"datasource,omitempty"`
	FieldConfig *fieldConfig    `json:"fieldConfig,omitempty"`
	Options     json.RawMessage `json:"options,omitempty"`
	Targets     []target        `json:"targets,omitempty"`
	Collapsed   bool            `json:"collapsed,omitempty"`
	Panels      []panel         `json:"panels,omitempty"` // of a row
}

type position struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []struct{}    `json:"overrides"`
}

type fieldDefaults struct {
	Unit       string      `json:"unit,omitempty"`
	Min        *float64    `json:"min,omitempty"`
	Thresholds *thresholds `json:"thresholds,omitempty"`
}

// thresholds color a value; the first step has no least value.
type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type target struct {
	RefID        string `json:"refId"`
	Expression   string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant,omitempty"`
	Format       string `json:"format,omitempty"`
}

// chosen is the source of data that people choose at the top of the page.
var chosen = &datasource{"prometheus", "${datasource}"}

// prefixVariable is the variable for the prefix of the metrics.
const prefixVariable = "${prefix}"

// about are the groups of metrics, by the first word of their names.
var about = []struct{ word, title string }{
	{"leader", "Elections of each node"},
	{"postgres", "PostgreSQL"},
	{"cluster", "Cluster"},
	{"node", "Nodes"},
	{"processor", "Processors"},
	{"cron", "Schedules"},
	{"retention", "Retention"},
	{"work", "Figures of processors and schedules"},
}

// renderDashboard makes the dashboard: what matters at a glance, and then a
// panel for each metric, in rows that are folded.
func renderDashboard() ([]byte, error) {
	g := grid{}
	panels := g.overview()
	for _, group := range about {
		row := panel{Type: "row", Title: group.title, Collapsed: true}
		g.place(&row, width, 1)
		for _, definition := range metrics.Definitions() {
			if word, _, _ := strings.Cut(definition.Name, "_"); word == group.word {
				row.Panels = append(row.Panels, g.panelOf(definition))
			}
		}
		panels = append(panels, row)
	}
	board := dashboard{
		Title: "Tenure", UID: "tenure", Tags: []string{"tenure"}, SchemaVersion: 39, Editable: true, Refresh: "10s",
		Description: "Who leads what, since when, and how the nodes fare. Written by deploy/generate.",
		Time:        timeRange{"now-3h", "now"},
		Templating: templating{[]variable{
			{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus"},
			{Name: "prefix", Label: "Prefix", Type: "textbox", Query: "tenure", Current: &option{"tenure", "tenure"}},
			{
				Name: "role", Label: "Role", Type: "query", Datasource: chosen, Refresh: 2, IncludeAll: true, Multi: true, AllValue: ".*",
				Query: "label_values(" + prefixVariable + "_leader_is_leader, role)", Current: &option{"All", "$__all"},
			},
		}},
		Panels: panels,
	}
	text, err := json.MarshalIndent(board, "", "  ")
	return append(text, '\n'), err
}

// words makes a title of the name of a metric: leader_is_leader, Is leader.
func words(name string) string {
	_, rest, _ := strings.Cut(name, "_")
	text := []rune(strings.ReplaceAll(rest, "_", " "))
	text[0] = unicode.ToUpper(text[0])
	return string(text)
}
