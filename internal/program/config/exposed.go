package config

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/exactly-one/tenure/internal/program/secretfile"
)

// exposed returns an error if other users can read a secret in the file. A value from the
// environment is not in the file, and a pipe has no mode.
func (f *File) exposed(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return unreadable(f.name, err)
	}
	mode, allowed := secretfile.Modes(info)
	if mode == allowed || !info.Mode().IsRegular() {
		return nil
	}
	for _, s := range f.ordered() {
		if s.holdsSecret() {
			return &Error{File: f.name, Line: s.at.line, Column: s.at.column, Message: fmt.Sprintf("%s holds a secret, and the file is open to other users "+
				"(mode %04o): run chmod %04o %s, or write ${NAME} and set the variable NAME", s.path, mode, allowed, f.name)}
		}
	}
	return nil
}

// holdsSecret reports whether the file itself has a password, a token or a key. A hash,
// and a command to print a secret, are none.
func (s setting) holdsSecret() bool {
	text, isText := s.value.(string)
	if !isText {
		return false
	}
	if s.template != "" {
		text = reference.ReplaceAllStringFunc(s.template, func(found string) string {
			_, fallback, _ := strings.Cut(strings.TrimSuffix(found, "}"), ":-")
			return fallback
		})
	}
	switch s.key.secret {
	case whole:
		return text != "" && !strings.HasSuffix(s.path, "_command") && !strings.HasSuffix(s.path, "_hash")
	case connection: // what is masked is more than an empty value
		masked := maskConnection(text)
		return masked != text && masked != mask && strings.ReplaceAll(masked, mask, "") != text
	case webhook:
		parsed, err := url.Parse(text)
		if err != nil || parsed.User == nil {
			return false
		}
		_, has := parsed.User.Password()
		return has
	}
	return false
}
