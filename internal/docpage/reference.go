package docpage

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	// WriteReference is the environment variable that makes CheckReference write.
	WriteReference = "TENURE_WRITE_REFERENCE"

	referenceTarget = "docs-reference"
	referenceNotice = "<!-- Parts of this page are generated: change the code and run `make docs-reference`. -->\n"
)

// CheckReference returns an error unless the part of the page at path that make
// docs-reference writes is text, and the first line of the page says that parts
// are generated. If [WriteReference] is set, it writes the part first.
func CheckReference(path, text string) error {
	var written string
	keep := func(old string) string {
		written = old
		return old
	}
	if os.Getenv(WriteReference) != "" {
		keep = func(string) string {
			written = strings.TrimSpace(text)
			return text
		}
	}
	if err := Update(path, referenceTarget, keep); err != nil {
		return err
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(page), referenceNotice) {
		return fmt.Errorf("the first line of %s must be %q", path, referenceNotice)
	}
	if written != strings.TrimSpace(text) {
		return fmt.Errorf("%s is out of date: run make %s: %w", path, referenceTarget, firstDifference(written, strings.TrimSpace(text)))
	}
	return nil
}

// firstDifference names the first line in which two texts differ.
func firstDifference(have, want string) error {
	haveLines, wantLines := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i, line := range wantLines {
		if i >= len(haveLines) || haveLines[i] != line {
			return fmt.Errorf("it lacks %q", line)
		}
	}
	return errors.New("it has lines too many")
}

// Row is a row of a Markdown table.
func Row(cells ...string) string {
	row := "|"
	for _, cell := range cells {
		cell = strings.Join(strings.Fields(strings.ReplaceAll(cell, "|", `\|`)), " ")
		row += strings.TrimRight(" "+cell, " ") + " |"
	}
	return row + "\n"
}

// Head is the head of a Markdown table.
func Head(titles ...string) string {
	return Row(titles...) + "|" + strings.Repeat("---|", len(titles)) + "\n"
}

// Code is the texts as code, separated by commas; it leaves out empty ones.
func Code(texts ...string) string {
	var marked []string
	for _, text := range texts {
		if text != "" {
			marked = append(marked, "`"+text+"`")
		}
	}
	return strings.Join(marked, ", ")
}
