package config

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// position is a place in the file.
type position struct {
	offset       int // in bytes, from 0
	line, column int // from 1; columns are characters
}

// lines are a file with the offsets of its lines.
type lines struct {
	data   []byte
	starts []int
}

func newLines(data []byte) lines {
	l := lines{data: data, starts: []int{0}}
	for offset, b := range data {
		if b == '\n' {
			l.starts = append(l.starts, offset+1)
		}
	}
	return l
}

// position is the position of an offset.
func (l lines) position(offset int) position {
	line, exact := slices.BinarySearch(l.starts, offset)
	if exact {
		line++
	}
	return position{offset: offset, line: line, column: utf8.RuneCount(l.data[l.starts[line-1]:offset]) + 1}
}

// decoded returns the text of a file without a mark at its begin, or says why it
// is none.
func decoded(name string, data []byte) ([]byte, *Error) {
	whole := func(message string) *Error { return &Error{File: name, Message: message} }
	if len(data) > maxSize {
		return nil, whole(fmt.Sprintf("the file is larger than %d bytes", maxSize))
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return nil, whole("the file is in UTF-16; save it as UTF-8")
		}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for offset := 0; offset < len(data); {
		r, size := utf8.DecodeRune(data[offset:])
		if r == utf8.RuneError && size == 1 {
			at := newLines(data).position(offset)
			return nil, &Error{File: name, Line: at.line, Column: at.column,
				Message: fmt.Sprintf("the byte 0x%02X is not UTF-8; save the file as UTF-8", data[offset])}
		}
		offset += size
	}
	return data, nil
}

// maxSize is far above every honest file; it keeps a wrong name, of a device say,
// from filling the memory.
const maxSize = 1 << 20
