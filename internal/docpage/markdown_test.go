package docpage

import (
	"slices"
	"strings"
	"testing"
)

const sample = "# The `--lease` [flag](a.md)\n\n[one](a.md#b) `[code](no.md)` [two](https://example.com) ![three](c.png \"C\")\n\n" +
	"1. In a list:\n\n   ```sh\n   # no heading\n     [no](link.md)\n   ```\n\n## Two\n\n## Two\n\n```\nplain\n```\n"

func TestBlocksAreFound(t *testing.T) {
	want := []Block{{"sh", "# no heading\n  [no](link.md)\n", 8}, {"", "plain\n", 17}}
	if got := Blocks(sample); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestIndentedBlocksAreFound(t *testing.T) {
	page := "# One\n\n    a \\\n      -b\n\n    c\n\nText\n    no code\n\n1. Step:\n\n       d\n\n   ```sh\n\n       no\n   ```\n"
	want := []Block{{"", "a \\\n  -b\nc\n", 3}, {"", "d\n", 13}}
	if got := Indented(page); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLinksOutsideOfCodeAreMapped(t *testing.T) {
	if got := Links(sample); !slices.Equal(got, []string{"a.md", "a.md#b", "c.png"}) {
		t.Errorf("links: %q", got)
	}
	got := MapLinks(sample, func(target string) string { return "/" + target })
	want := strings.NewReplacer("(a.md", "(/a.md", "(c.png", "(/c.png").Replace(sample)
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTitleAndAnchorsAreFound(t *testing.T) {
	if got := Title("```sh\n# no heading\n```\n" + sample); got != "The --lease flag" {
		t.Errorf("title: %q", got)
	}
	if got := Anchors(sample + "<a id=\"set\"></a>\n"); !slices.Equal(got, []string{"the---lease-flag", "two", "two-1", "set"}) {
		t.Errorf("anchors: %q", got)
	}
}
