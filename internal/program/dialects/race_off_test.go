//go:build !race

package dialects

const raceDetector = false
