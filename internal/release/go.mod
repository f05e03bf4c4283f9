module github.com/exactly-one/tenure/internal/release

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/moby/patternmatcher v0.6.1
	golang.org/x/mod v0.42.0
)
