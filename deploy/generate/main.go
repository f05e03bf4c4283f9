// Command generate writes the files in deploy/grafana and deploy/prometheus from
// the definitions of the metrics: a dashboard, and rules for each prefix.
//
//	go generate ./deploy/generate
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
)

//go:generate go run . ..

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: generate FOLDER, where FOLDER has grafana and prometheus in it")
	}
	files, err := generate()
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// generate returns the contents of the files by their names.
func generate() (map[string][]byte, error) {
	board, err := renderDashboard()
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	files := map[string][]byte{filepath.Join("grafana", "tenure.json"): board}
	for _, prefix := range []string{"tenure", "forge"} {
		files[filepath.Join("prometheus", prefix+".yaml")] = renderRules(prefix)
	}
	return files, nil
}
