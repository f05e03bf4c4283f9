package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

func readSBOM(t *testing.T, f File) *cyclonedx.BOM {
	t.Helper()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(f.Content), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.SpecVersion != cyclonedx.SpecVersion1_6 {
		t.Errorf("the format is %s %v; want CycloneDX 1.6", bom.BOMFormat, bom.SpecVersion)
	}
	return &bom
}

func TestSBOMListsEveryModule(t *testing.T) {
	f, err := SBOM("tenure_0.1.0_linux_amd64", program, &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "example.com/program", Version: "v0.1.0", Sum: "h1:main="},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0+incompatible", Sum: "h1:a="},
			{Path: "example.com/b", Version: "v2.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v3.0.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}},
	}, made)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "tenure_0.1.0_linux_amd64.cdx.json" {
		t.Errorf("the file is %s", f.Name)
	}
	bom := readSBOM(t, f)
	if bom.Metadata.Timestamp != "2026-11-23T12:30:00Z" {
		t.Errorf("the time is %s", bom.Metadata.Timestamp)
	}
	sum := sha256.Sum256(program)
	application := bom.Metadata.Component
	if hash := (*application.Hashes)[0]; hash.Value != hex.EncodeToString(sum[:]) || application.PackageURL != "pkg:golang/example.com/program@v0.1.0" {
		t.Errorf("the program is %s with the hash %s", application.PackageURL, hash.Value)
	}
	if property := (*application.Properties)[0]; property.Name != "go:build:GOOS" || property.Value != "linux" {
		t.Errorf("the program was built with %v", property)
	}
	want := "pkg:golang/std@1.26.8 pkg:golang/example.com/a@v1.0.0%2Bincompatible pkg:golang/example.com/c@v3.0.0"
	var urls []string
	for _, c := range *bom.Components {
		urls = append(urls, c.PackageURL)
	}
	if got := strings.Join(urls, " "); got != want {
		t.Errorf("it contains %s; want %s", got, want)
	}
	dependencies := (*bom.Dependencies)[0]
	if got := strings.Join(*dependencies.Dependencies, " "); dependencies.Ref != application.BOMRef || got != want {
		t.Errorf("%s depends on %s; want %s", dependencies.Ref, got, want)
	}
	if sum := (*(*bom.Components)[1].Properties)[0]; sum.Value != "h1:a=" {
		t.Errorf("the checksum of a module is %v", sum)
	}
}
