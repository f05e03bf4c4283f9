package pack

import "testing"

func TestNotesHaveTheSection(t *testing.T) {
	section := `
### Added

- One entry
  on three
  lines; [docs](docs/howto/lead.md).
- Another: [here](https://example.com/x), [there](#there).

  A paragraph.

### Fixed

- A fault.
`
	want := `### Added

- One entry on three lines; [docs](https://github.com/exactly-one/tenure/blob/v0.1.0/docs/howto/lead.md).
- Another: [here](https://example.com/x), [there](#there).

  A paragraph.

### Fixed

- A fault.
`
	if got := string(Notes(section, "v0.1.0")); got != want {
		t.Errorf("the notes are:\n%s\nwant:\n%s", got, want)
	}
}

func TestLinksBecomeAbsolute(t *testing.T) {
	const place = "https://github.com/exactly-one/tenure/"
	for page, want := range map[string]string{
		"[a](docs/a.md#b)":                    "[a](" + place + "blob/v0.1.0/docs/a.md#b)",
		"![a](docs/a.png)":                    "![a](" + place + "raw/v0.1.0/docs/a.png)",
		`<img src="docs/a.png" alt="a: b">`:   `<img src="` + place + `raw/v0.1.0/docs/a.png" alt="a: b">`,
		`<source srcset="docs/a.svg">`:        `<source srcset="` + place + `raw/v0.1.0/docs/a.svg">`,
		`<source srcset="docs/a.png">`:        `<source srcset="` + place + `raw/v0.1.0/docs/a.png">`,
		"x\n[a]: docs/a.md\n":                 "x\n[a]: " + place + "blob/v0.1.0/docs/a.md\n",
		"[a]: https://example.com\n":          "[a]: https://example.com\n",
		"Values are [x]: not links (docs/a).": "Values are [x]: not links (docs/a).",
	} {
		if got := string(AbsoluteLinks([]byte(page), "v0.1.0")); got != want {
			t.Errorf("%s becomes %s; want %s", page, got, want)
		}
	}
}

func TestSumsAreSortedByName(t *testing.T) {
	got := Sums([]File{{Name: "b", Content: []byte("b")}, {Name: "a", Content: []byte("a")}})
	want := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n" +
		"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if got.Name != "SHA256SUMS" || string(got.Content) != want {
		t.Errorf("%s is:\n%swant:\n%s", got.Name, got.Content, want)
	}
}
