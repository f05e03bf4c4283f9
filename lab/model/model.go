package main

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// sources are the models. The comment at the top of each lists its parts, its variants and
// the code that it abstracts, one on a line.
//
//go:embed *.pml
var sources embed.FS

// model is one file.
type model struct {
	name     string // of the file
	text     []byte
	parts    []part
	variants []variant
	code     []reference
}

// part is a model with the definitions of one search.
type part struct {
	name    string
	defines []string
	what    string
}

// variant is a part with a rule that is broken on purpose.
type variant struct {
	name     string
	defines  []string // of the broken rule
	part     string
	property string // that the search must refute
	what     string
}

// reference names the source of one rule and the digest of the text that was modeled.
type reference struct {
	file, symbol, digest string
}

var (
	partLine    = regexp.MustCompile(`^part: (\S+)((?: -D\S+)*) : (.+)$`)
	variantLine = regexp.MustCompile(`^variant: (\S+)((?: -D\S+)+) (\S+) (\S+) : (.+)$`)
	codeLine    = regexp.MustCompile(`^code: (\S+) (\S+) sha256:([0-9a-f]+)$`)
	headerLine  = regexp.MustCompile(`^(part|variant|code):`)
)

// readModels reads all models, in the order of their names.
func readModels() ([]model, error) {
	entries, err := sources.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var models []model
	for _, entry := range entries {
		text, err := sources.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		m, err := parseModel(entry.Name(), text)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// parseModel reads the lines of the comment at the top.
func parseModel(name string, text []byte) (model, error) {
	m := model{name: name, text: text}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		switch {
		case line == "*/":
			return m, m.check()
		case !headerLine.MatchString(line):
		case partLine.MatchString(line):
			f := partLine.FindStringSubmatch(line)
			m.parts = append(m.parts, part{f[1], strings.Fields(f[2]), f[3]})
		case variantLine.MatchString(line):
			f := variantLine.FindStringSubmatch(line)
			m.variants = append(m.variants, variant{name: f[1], defines: strings.Fields(f[2]), part: f[3], property: f[4], what: f[5]})
		case codeLine.MatchString(line):
			f := codeLine.FindStringSubmatch(line)
			m.code = append(m.code, reference{f[1], f[2], f[3]})
		default:
			return m, fmt.Errorf("%s:%d: cannot read %q", name, number, line)
		}
	}
	return m, fmt.Errorf("%s: the comment at the top does not end", name)
}

// check reports a model that lacks a part, code or the abstractions, and a variant of an unknown part.
func (m model) check() error {
	if len(m.parts) == 0 || len(m.code) == 0 || !bytes.Contains(m.text, []byte("\nAbstractions. ")) {
		return fmt.Errorf("%s: the comment at the top must have a part, code, and a paragraph that begins with Abstractions", m.name)
	}
	for _, v := range m.variants {
		if _, known := m.part(v.part); !known {
			return fmt.Errorf("%s: the variant %s breaks %s, which is no part", m.name, v.name, v.part)
		}
		for _, define := range v.defines {
			if !bytes.Contains(m.text, []byte("\n#ifdef "+define[2:])) && !bytes.Contains(m.text, []byte("\n#ifndef "+define[2:])) && !bytes.Contains(m.text, []byte("defined("+define[2:]+")")) {
				return fmt.Errorf("%s: nothing depends on %s of the variant %s", m.name, define[2:], v.name)
			}
		}
	}
	return nil
}

func (m model) part(name string) (part, bool) {
	i := slices.IndexFunc(m.parts, func(p part) bool { return p.name == name })
	if i < 0 {
		return part{}, false
	}
	return m.parts[i], true
}
