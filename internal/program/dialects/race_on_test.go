//go:build race

package dialects

// raceDetector slows the SQLite library, which is translated C, down to a tenth.
const raceDetector = true
