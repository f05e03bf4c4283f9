package record

// Checked is the printed result of a check of a configuration file.
type Checked struct {
	File    string   `json:"file"`
	Notices []string `json:"notices"`
}
