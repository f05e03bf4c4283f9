package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/exactly-one/tenure/internal/docpage"
)

var (
	sourceImage = regexp.MustCompile(`srcset="docs/([^"]+)"`)
	mainImage   = regexp.MustCompile(`<img src="docs/([^"]+)" alt="([^"]+)"`)
)

// firstPage is the part of the first page that VitePress lays out.
type firstPage struct {
	Layout        string    `json:"layout"`
	Title         string    `json:"title"`
	TitleTemplate bool      `json:"titleTemplate"`
	Description   string    `json:"description"`
	Hero          hero      `json:"hero"`
	Sections      []feature `json:"sections"`
}

type hero struct {
	Name    string   `json:"name"`
	Text    string   `json:"text"`
	Tagline string   `json:"tagline"`
	Actions []action `json:"actions"`
}

type action struct {
	Theme string `json:"theme"`
	Text  string `json:"text"`
	Link  string `json:"link"`
}

type feature struct {
	Title   string `json:"title"`
	Details string `json:"details"`
	Link    string `json:"link"`
}

// landing makes the first page from the beginning of the README, which is its title,
// the tagline, the pitch, a picture and the first commands, and from the menu.
func landing(text string, menu []section) (string, error) {
	paragraphs := strings.SplitN(text, "\n\n", 5)
	blocks := docpage.Blocks(text)
	if len(paragraphs) < 5 || len(blocks) == 0 || blocks[0].Language != "sh" {
		return "", fmt.Errorf("%s must begin with a title, a tagline, a pitch, a picture and commands", readme)
	}
	dark, light := sourceImage.FindStringSubmatch(paragraphs[3]), mainImage.FindStringSubmatch(paragraphs[3])
	if dark == nil || light == nil {
		return "", fmt.Errorf("the picture of %s must have an image for dark and one for light pages, in %s", readme, folder)
	}
	page := firstPage{
		Layout: "home", Title: docpage.Title(text), Description: paragraphs[1],
		Hero: hero{Name: docpage.Title(text), Text: paragraphs[1], Tagline: strings.ReplaceAll(paragraphs[2], "\n", " ")},
	}
	themes := []string{"brand", "alt"}
	for i, s := range menu {
		page.Sections = append(page.Sections, feature{s.Text, s.details(), s.firstLink()})
		if i == 0 {
			for n, first := range s.Items[:min(len(s.Items), len(themes))] {
				page.Hero.Actions = append(page.Hero.Actions, action{themes[n], first.Text, first.Link})
			}
		}
	}
	matter, err := json.MarshalIndent(page, "", "  ") // JSON is YAML, too
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(landingTemplate, matter, light[1], light[2], dark[1], light[2], blocks[0].Text), nil
}

// details describes a section: by the index, or by the names of its pages.
func (s section) details() string {
	if s.Details != "" {
		return capitalFirst(s.Details)
	}
	var names []string
	for _, page := range s.Items[1:] {
		names = append(names, page.Text)
	}
	return strings.Join(names, ", ")
}

func capitalFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

const landingTemplate = `---
%s
---

<script setup>
import { VPFeatures } from 'vitepress/theme'
</script>

<img class="picture light-only" src="./%s" alt="%s">
<img class="picture dark-only" src="./%s" alt="%s">

` + "```sh\n%s```" + `

<VPFeatures class="sections" :features="$frontmatter.sections" />

[All documents](./contents.md)
`
