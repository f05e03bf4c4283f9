package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// The checker of accessibility, as npm has it, with its digest.
const (
	axeVersion = "4.14.1"
	axeDigest  = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
	cache      = "../../../bin/npm"
)

// axe returns the checker's script. It is fetched once; where that cannot be done
// the test fails.
func axe(t *testing.T) string {
	t.Helper()
	archive := filepath.Join(cache, "axe-core-"+axeVersion+".tgz")
	content, err := os.ReadFile(archive)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(cache, 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "npm", "pack", "--silent", "--pack-destination", cache, "axe-core@"+axeVersion)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("axe-core cannot be had: %v\n%s\nInstall npm, or put %s there by hand.", err, output, archive)
		}
		content, err = os.ReadFile(archive)
	}
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha512.Sum512(content); "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != axeDigest {
		t.Fatalf("%s is not the axe-core that is meant; remove it", archive)
	}
	script, err := extract(content, "package/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// extract returns a file of an archive.
func extract(archive []byte, name string) (string, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("look for %s: %w", name, err)
		}
		if header.Name == name {
			content, err := io.ReadAll(files)
			return string(content), err
		}
	}
}

// TestPagesPassAccessibilityChecker: the checker finds nothing on any page, light or dark, at a
// desk or on a phone, nor in a dialog.
func TestPagesPassAccessibilityChecker(t *testing.T) {
	script := axe(t)
	w := newWorld(t, dashboard.Config{
		Alerts: handledAlerts, HandleAlert: func(context.Context, dashboard.AlertRequest) error { return nil }, Authentication: withToken(t),
	}, seed)
	p := w.open("#/login")
	check := func(what string) {
		t.Helper()
		faults := value[[]string](p, `axe.run({ resultTypes: ["violations"] }).then((found) => found.violations.flatMap((violation) =>
			violation.nodes.map((node) => violation.id + ": " + node.html + " (" + node.failureSummary + ")")))`)
		for _, fault := range faults {
			t.Errorf("%s: %s", what, fault)
		}
	}
	value[bool](p, script+"; true")
	p.shows("Enter the access token")
	check("logging in")
	p.logIn()
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		for _, shown := range everyPage {
			p.visit(shown.hash)
			p.shows(shown.shows)
			p.settle()
			check(shown.name + ", " + theme)
		}
	}
	p.do("phone", chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	for _, shown := range everyPage {
		p.visit(shown.hash)
		p.shows(shown.shows)
		p.settle()
		check(shown.name + ", on a phone")
		for what, wide := range map[string]int{
			"the page": value[int](p, `document.documentElement.scrollWidth`), "its navigation": value[int](p, `document.querySelector("nav").scrollWidth`),
			"a table": value[int](p, `Math.max(0, ...[...document.querySelectorAll(".scroll, .list")].map((e) => e.scrollWidth))`),
		} {
			if wide > 360 {
				t.Errorf("%s: %s is %d pixels wide on a phone of 360", shown.name, what, wide)
			}
		}
	}
	p.do("twice the size", chromedp.EmulateViewport(680, 450))
	for _, shown := range everyPage {
		p.visit(shown.hash)
		p.shows(shown.shows)
		if wide := value[int](p, `document.documentElement.scrollWidth`); wide > 680 {
			t.Errorf("%s is %d pixels wide in a window of 680", shown.name, wide)
		}
	}
	p.visit("#/role/scheduler")
	p.do("open a dialog", chromedp.WaitVisible(`button[data-action="hand_over scheduler"]`), chromedp.Click(`button[data-action="hand_over scheduler"]`), chromedp.WaitVisible("dialog"))
	check("a dialog")
}
