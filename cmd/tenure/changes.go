package main

import "time"

// handChangesRecord is what was done by hand, as it is printed.
type handChangesRecord struct {
	Changes []handChangeRecord `json:"changes"`
}

type handChangeRecord struct {
	At     timestamp `json:"at"`
	By     string    `json:"by"`
	Name   string    `json:"name"` // of what was changed
	Action string    `json:"action"`
	Detail string    `json:"detail,omitempty"`
}

// printChanges prints changes; column is what the names in them are of.
func printChanges(out *output, column string, records []handChangeRecord) error {
	rows := [][]string{{"AT", "BY", column, "ACTION", "DETAIL"}}
	for _, r := range records {
		rows = append(rows, []string{dayTime(time.Time(r.At)), flatten(r.By), flatten(r.Name), r.Action, orDash(flatten(r.Detail))})
	}
	return out.printTable(handChangesRecord{append([]handChangeRecord{}, records...)}, rows)
}
