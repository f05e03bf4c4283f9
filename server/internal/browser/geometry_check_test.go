package browser

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	documents "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// geometryScript is a function of a width; its comment describes the findings.
//
//go:embed testdata/geometry.js
var geometryScript string

// canvasScript must run before the scripts of a page, so that the check knows the texts of charts.
//
//go:embed testdata/geometry-canvas.js
var canvasScript string

// recordCanvases loads the page again, so that the check knows the texts of its charts.
func (p *page) recordCanvases() {
	p.Helper()
	p.do("record the texts of charts", command(documents.AddScriptToEvaluateOnNewDocument, documents.AddScriptToEvaluateOnNewDocumentParams{Source: canvasScript}), chromedp.Reload())
}

// geometryFinding is something that a user cannot read or reach, at one or more places of a page that
// look alike.
type geometryFinding struct {
	Kind       string `json:"kind"`
	Text       string `json:"text"`
	Where      string `json:"where"`
	Box        []int  `json:"box"` // left, top, width, height
	OtherText  string `json:"otherText"`
	OtherWhere string `json:"otherWhere"`
	OtherBox   []int  `json:"otherBox"`
	Times      int    `json:"times"`
}

// String describes the finding in a line.
func (f geometryFinding) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %q in %q at %v", f.Kind, f.Text, f.Where, f.Box)
	if f.OtherWhere != "" {
		fmt.Fprintf(&out, " and %q in %q at %v", f.OtherText, f.OtherWhere, f.OtherBox)
	}
	if f.Times > 1 {
		fmt.Fprintf(&out, " (%d times)", f.Times)
	}
	return out.String()
}

// geometry returns what a user cannot read or reach in a window of a width.
func (p *page) geometry(width int) []geometryFinding {
	p.Helper()
	return value[[]geometryFinding](p, fmt.Sprintf("(%s)(%d)", geometryScript, width))
}

// reportTo makes the page report to a subtest until the returned function is called.
func (p *page) reportTo(t testing.TB) (restore func()) {
	before := p.TB
	p.TB = t
	return func() { p.TB = before }
}
