package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

// header is of the table in CONTRIBUTING.md.
const header = "| gate or slice | what it proves | time |\n|---|---|---|"

// writeTimes writes the table of gates and slices to CONTRIBUTING.md, with the times
// of the parts that ran. The others keep theirs.
func (r *runner) writeTimes() error {
	return docpage.Update(filepath.Join(r.root, "CONTRIBUTING.md"), "deep", func(old string) string { return table(old, r.took) })
}

// table returns the table with new times.
func table(old string, took map[string]time.Duration) string {
	before := map[string]string{}
	for line := range strings.Lines(old) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); len(cells) == 3 {
			before[cells[0]] = cells[2]
		}
	}
	rows := []string{header}
	add := func(key, shown, proves string) {
		value := before[shown]
		if d, ok := took[key]; ok {
			value = fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
		}
		if value == "" {
			value = "–"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", shown, proves, value))
	}
	for _, p := range slices.Concat([]part{quick, check}, deep) {
		add(p.name, "`"+p.name+"`", p.proves)
		if p.name == check.name {
			for _, s := range p.steps {
				add(p.key(s), "– "+s.title, s.proves)
			}
		}
	}
	return strings.Join(rows, "\n")
}
