package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// geometryDocuments are pages of a window of 360 by 740 pixels, each with the kinds of findings that it
// must have, in any order.
var geometryDocuments = []struct{ name, body, want string }{
	{"two texts overlap", `<p>first</p><p style="margin-top: -30px">second</p>`, "overlap"},
	{"a row is less high than its text", `<div style="position: relative">` +
		`<div style="position: absolute; height: 20px; width: 100px"><b style="display: block">first</b><b style="display: block">second</b></div>` +
		`<div style="position: absolute; height: 20px; top: 20px; width: 100px"><i>third</i></div></div>`, "overlap"},
	{"texts overlap in a list that is scrolled to them", `<div style="height: 60px; overflow: auto"><div style="height: 300px">first</div><p>second</p><p style="margin-top: -30px">third</p></div>`, "overlap"},
	{"texts overlap sideways", `<div style="white-space: nowrap; width: 60px; float: left"><i>a long beginning</i></div><b>end</b>`, "overlap"},
	{"texts are close", `<p style="line-height: 1.1; margin: 0"><i>first</i><br><b>second</b></p>`, ""},
	{"a text is below the end of a list that scrolls", `<div style="height: 40px; overflow: auto"><div>first</div><div style="padding-top: 40px">second</div></div><p style="margin: 0">third</p>`, ""},
	{"a text is only for screen readers", `<p>first</p><span style="position: absolute; top: 16px; left: 8px; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)">second</span>`, ""},
	{"a tip lies on a text on purpose", `<p>first</p><div style="position: absolute; z-index: 5; top: 10px; left: 8px; background: red">second</div>`, ""},
	{"a box without a color lies on a text", `<p>first</p><div style="position: relative; top: -40px; height: 40px"></div>`, ""},
	{"an element hides a text", `<p>first</p><div style="position: relative; top: -40px; height: 40px; background: red"></div>`, "covered"},

	{"an ellipsis hides a text", `<div style="width: 60px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap">a text that is too long</div>`, "cut"},
	{"a title has the text behind an ellipsis", `<div title="a text that is too long" style="width: 60px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap">a text that is too long</div>`, ""},
	{"a title has something else", `<div title="a text" style="width: 60px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap">a text that is too long</div>`, "cut"},
	{"a label has the text", `<a href="#x" aria-label="a text that is too long" style="display: block; width: 60px; overflow: hidden; white-space: nowrap">a text that is too long</a>`, ""},
	{"the last of several texts is behind an ellipsis", `<div style="width: 60px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap"><span>a text</span> <b>of two</b></div>`, "cut"},
	{"lines are cut after two", `<div style="width: 60px; overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2">one two three four five six seven</div>`, "cut"},
	{"lines fit", `<div style="width: 60px; overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2">one two</div>`, ""},
	{"a box is less high than a line", `<div style="height: 9px; overflow: hidden">first</div>`, "cut"},
	{"a control expands the text", `<button aria-expanded="false" aria-controls="x">More</button><div id="x" style="height: 20px; width: 60px; overflow: hidden">one two three four five six</div>`, ""},
	{"a text begins left of the page", `<p style="margin-left: -40px">first</p>`, "cut"},
	{"a text begins left of what scrolls", `<div style="overflow: auto; width: 100px"><p style="margin-left: -40px">first</p></div>`, "cut"},
	{"a table scrolls sideways in its frame", `<div style="overflow-x: auto"><table style="width: 900px"><tr><td>first<td><a href="#x">second</a></table></div>`, ""},
	{"a placeholder is cut", `<input placeholder="Find a user, an action or a name" style="width: 80px">`, "cut"},
	{"a label has the placeholder", `<input aria-label="Find a user, an action or a name" placeholder="Find a user, an action or a name" style="width: 80px">`, ""},

	{"texts of a chart overlap", chart(`c.fillText("first", 20, 20); c.fillText("second", 25, 24)`), "overlap"},
	{"a text of a chart is outside of it", chart(`c.fillText("first", 190, 20)`), "cut"},
	{"a chart is drawn anew", chart(`c.fillText("first", 20, 20); c.clearRect(0, 0, 200, 50); c.fillText("second", 25, 24)`), ""},
	{"texts of a chart are apart", chart(`c.fillText("first", 20, 20); c.fillText("second", 20, 40)`), ""},

	{"a control has no size", `<button style="width: 0; height: 0; padding: 0; border: 0; overflow: hidden" aria-label="first"></button>`, "hidden"},
	{"a control is outside of its box", `<div style="height: 30px; overflow: hidden"><p>first</p><button aria-label="second">2</button></div>`, "cut hidden"},
	{"half of a control is outside of its box", `<div style="width: 60px; overflow: hidden"><button style="width: 90px">a</button></div>`, "outside"},
	{"a control is outside of the page", `<button style="position: absolute; left: -200px" aria-label="first">1</button>`, "cut hidden"},
	{"an element lies on a control", `<button>first</button><div style="position: absolute; inset: 0; background: rgb(0 0 0 / 10%)"></div>`, "blocked"},
	{"a control is reached by scrolling", `<div style="height: 60px; overflow: auto"><div style="height: 900px">first</div><button>second</button></div><div style="height: 2000px"></div><button>third</button>`, ""},
	{"a sticky header covers nothing for good", `<header style="position: sticky; top: 0; background: white"><a href="#x">first</a></header><div style="height: 1500px">second</div><a href="#y">third</a>`, ""},
	{"a checkbox is in its label", `<label>first <input type="checkbox"></label>`, ""},
	{"controls are not shown", `<button hidden>first</button><button style="visibility: hidden">second</button>`, ""},
	{"a dialog covers the page", `<button>first</button><dialog>second <button>third</button></dialog><script>document.querySelector("dialog").showModal()</script>`, ""},
	{"a control of a dialog is outside of its box", `<dialog><div style="height: 30px; overflow: hidden"><p>first</p><button aria-label="second">2</button></div></dialog><script>document.querySelector("dialog").showModal()</script>`, "cut hidden"},

	{"the page scrolls sideways", `<p style="width: 900px">first</p>`, "sideways"},
	{"a text that cannot break is too wide", `<p>` + strings.Repeat("x", 200) + `</p>`, "sideways"},
	{"a part of the page scrolls sideways", `<div style="overflow: auto; width: 100px"><p style="width: 200px">first</p></div>`, "sideways"},
	{"a dialog scrolls sideways", `<dialog style="width: 100px">` + strings.Repeat("x", 200) + `</dialog><script>document.querySelector("dialog").showModal()</script>`, "sideways"},
	{"the page scrolls down", `<p style="height: 3000px">first</p><p>second</p>`, ""},
	{"nothing is wrong", `<h1>first</h1><p>second <a href="#x">third</a></p><button>fourth</button><select><option>fifth</select>`, ""},
}

// chart returns a page with a canvas on which a script draws with c.
func chart(script string) string {
	return `<canvas width="200" height="50"></canvas><script>{ const c = document.querySelector("canvas").getContext("2d"); c.font = "12px sans-serif"; ` + script + ` }</script>`
}

// TestGeometryCheckFindsFaults: the check finds each kind of fault in a small page, and nothing in a page
// that a user can read.
func TestGeometryCheckFindsFaults(t *testing.T) {
	w := newWorld(t, bare, nil)
	p := w.open(emptyPage)
	const width = 360
	p.do("phone", chromedp.EmulateViewport(width, 740))
	p.recordCanvases()
	for _, document := range geometryDocuments {
		t.Run(document.name, func(t *testing.T) {
			defer p.reportTo(t)()
			value[bool](p, fmt.Sprintf(`(() => {
				document.open();
				document.write(%s);
				document.close();
				return true;
			})()`, quote(`<!doctype html><html lang="en"><title>Fault</title><link rel="icon" href="data:,"><body style="margin: 8px; font: 16px/1.3 sans-serif">`+document.body)))
			kinds := map[string]bool{}
			findings := p.geometry(width)
			for _, f := range findings {
				kinds[f.Kind] = true
			}
			want := strings.Fields(document.want)
			missing := len(kinds) != len(want)
			for _, kind := range want {
				missing = missing || !kinds[kind]
			}
			if missing {
				t.Errorf("the findings are %v; want the kinds %v", findings, want)
			}
			if at := value[float64](p, "scrollX + scrollY"); at != 0 {
				t.Errorf("the check leaves the page scrolled by %v pixels", at)
			}
		})
	}
}
