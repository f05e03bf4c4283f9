package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	// writePictures is the environment variable that makes tests write the pictures of incidents.
	writePictures = "TENURE_WRITE_PICTURES"
	// incidentPictures is where they are.
	incidentPictures = "../../../docs/images/incidents"
	// mostColors is how many colors a picture has, which keeps it small.
	mostColors = 48
)

// writePicture writes what is in view, if pictures are wanted.
func (p *page) writePicture(name string) {
	p.Helper()
	if os.Getenv(writePictures) == "" {
		return
	}
	shown, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatal(err)
	}
	small, err := withFewColors(shown)
	if err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(incidentPictures, name+".png"), small, 0o644); err != nil {
		p.Fatal(err)
	}
}

// withFewColors returns a PNG image with its most frequent colors only.
func withFewColors(original []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(original))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	box := full.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	var colors color.Palette
	for c := range count {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.Color) int {
		one, other := a.(color.RGBA), b.(color.RGBA)
		return cmp.Or(count[other]-count[one], bytes.Compare([]byte{one.R, one.G, one.B}, []byte{other.R, other.G, other.B}))
	})
	colors = colors[:min(len(colors), mostColors)]
	nearest := map[color.RGBA]uint8{}
	small := image.NewPaletted(box, colors)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			index, known := nearest[c]
			if !known {
				index = uint8(colors.Index(c)) // there are fewer than 256
				nearest[c] = index
			}
			small.SetColorIndex(x, y, index)
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)
	return out.Bytes(), err
}

// textInView is an expression for the text that a user sees without scrolling. A part of a text that
// something covers or cuts is not in it.
const textInView = `(() => {
	const seen = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text; (text = texts.nextNode());) {
		if (!text.data.trim() || !text.parentElement.checkVisibility({ visibilityProperty: true })) continue;
		const range = document.createRange();
		range.selectNodeContents(text);
		const boxes = [...range.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
		const inView = (box) => box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth &&
			document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === text.parentElement;
		if (boxes.length && boxes.every(inView)) seen.push(text.data);
	}
	const joined = seen.join(" ").replace(/[\u2066-\u2069]/g, "").replace(/\s+/g, " ").replace(/ ([.,:;)])/g, "$1").replace(/\( /g, "(");
	return scrollY === 0 ? joined : "the page is scrolled";
})()`

// TestTextInViewLeavesOutWhatIsNotSeen: text below the fold, in a part that is scrolled away, hidden
// or covered is not in view.
func TestTextInViewLeavesOutWhatIsNotSeen(t *testing.T) {
	w := newWorld(t, bare, nil)
	p := w.open("")
	p.shows("No node has joined yet")
	value[bool](p, `(() => {
		const part = (style, ...content) => {
			const element = document.createElement("div");
			element.style.cssText = style;
			element.append(...content);
			return element;
		};
		document.body.replaceChildren(part("", "in ", part("display: inline", "view"), "."), part("height: 40px; overflow: auto", part("height: 200px", "above"), "scrolled away"),
			part("position: relative", "covered", part("position: absolute; inset: 0; background: red")), part("visibility: hidden", "hidden"), part("margin-top: 2000px", "below"));
		return true;
	})()`)
	if got, want := value[string](p, textInView), "in view. above"; got != want {
		t.Errorf("the text in view is %q, want %q", got, want)
	}
}
