package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// SBOM makes the bill of materials of a program, in CycloneDX's JSON, from what the
// go command recorded in it: the standard library and the modules it contains.
func SBOM(name string, program []byte, build *debug.BuildInfo, made time.Time) (File, error) {
	bom := cyclonedx.NewBOM()
	sum := sha256.Sum256(program)
	application := component(build.Main)
	application.Type = cyclonedx.ComponentTypeApplication
	application.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	application.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	application.Properties = settings(build)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: made.UTC().Format(time.RFC3339), Component: &application}

	components := []cyclonedx.Component{component(debug.Module{Path: "std", Version: strings.TrimPrefix(build.GoVersion, "go")})}
	for _, dependency := range build.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		components = append(components, component(*dependency))
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Components = &components
	// The program does not record which module needs which.
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: application.BOMRef, Dependencies: &refs}}

	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return File{name + ".cdx.json", 0o644, out.Bytes()}, err
}

// component is a module in a bill of materials.
func component(m debug.Module) cyclonedx.Component {
	address := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := cyclonedx.Component{
		BOMRef: address, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: address,
	}
	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// settings is how the program was built.
func settings(build *debug.BuildInfo) *[]cyclonedx.Property {
	var all []cyclonedx.Property
	for _, setting := range build.Settings {
		all = append(all, cyclonedx.Property{Name: "go:build:" + setting.Key, Value: setting.Value})
	}
	return &all
}
