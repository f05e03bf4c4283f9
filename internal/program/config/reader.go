package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/nearest"
)

// reader walks through a file and collects its settings and its faults.
type reader struct {
	env    Environment
	lines  lines
	parser unstable.Parser
	file   *File
	faults []*Error
}

// place is a place in the tree of keys, with the names on the way there. Its node is nil
// in an unknown table, which has been reported already.
type place struct {
	node *schema
	path string
	// table is the path of the table a header can begin here, and list the path of the
	// list of tables around it, or "". Tables within an element, such as labels, belong
	// to the element's table.
	table, list string
}

func (r *reader) fault(at position, format string, args ...any) {
	r.faults = append(r.faults, &Error{
		File: r.file.name, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...),
	})
}

func (r *reader) clean() bool { return len(r.faults) == 0 }

// at is the position of a node of the file. A node without a position has its key's.
func (r *reader) at(node *unstable.Node, key position) position {
	if node.Raw.Length == 0 {
		return key
	}
	return r.lines.position(int(node.Raw.Offset))
}

// read walks through the whole file, or up to its first fault of syntax. The strict
// decoder then finds the faults invisible to the walk: of the syntax, dates and numbers,
// and tables defined twice.
func (r *reader) read() {
	r.parser.Reset(r.lines.data)
	table := place{node: root}
	for r.parser.NextExpression() {
		expression := r.parser.Expression()
		switch expression.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = r.header(expression)
		case unstable.KeyValue:
			r.keyValue(table, expression)
		}
	}
	if len(r.faults) >= maxReported {
		return
	}
	err := toml.Unmarshal(r.lines.data, &map[string]any{})
	if err == nil {
		return
	}
	fault := &Error{File: r.file.name, Message: strings.TrimPrefix(err.Error(), "toml: ")}
	var decoding *toml.DecodeError
	if errors.As(err, &decoding) {
		fault.Line, fault.Column = decoding.Position()
	}
	reported := slices.ContainsFunc(r.faults, func(other *Error) bool { return other.Line == fault.Line })
	if !reported {
		r.faults = append(r.faults, fault)
	}
}

// header enters the table of a header.
func (r *reader) header(expression *unstable.Node) place {
	here := place{node: root}
	var at position
	parts := expression.Key()
	for parts.Next() {
		part := parts.Node()
		at = r.at(part, at)
		if here = r.descend(here, string(part.Data), at, true); here.node == nil {
			return here
		}
	}
	list := expression.Kind == unstable.ArrayTable
	switch node := here.node; {
	case node.key != nil:
		r.fault(at, "%s is not a table but %v", here.path, node.key.kind)
		return place{}
	case list && node.element == nil:
		r.fault(at, "[%s] is one table, not a list of tables: write single brackets", here.path)
		return place{}
	case list && r.file.elements[here.path] == 0 && r.begunBelow(here.path):
		r.fault(at, "write [[%s]] before the tables that begin with [%s.: TOML does not allow it the other way round", here.path, here.path)
		return place{}
	case list:
		return r.newElement(here, at)
	case node.element != nil:
		r.fault(at, "%s is a list of tables: write [[%s]]", here.path, here.path)
		return place{}
	}
	return here
}

// begin notes where a table begins, the first time.
func (r *reader) begin(path string, at position) {
	if _, ok := r.file.tables[path]; !ok {
		r.file.tables[path] = at
	}
}

// begunBelow reports whether a table within another has begun.
func (r *reader) begunBelow(path string) bool {
	for begun := range r.file.tables {
		if strings.HasPrefix(begun, path+".") {
			return true
		}
	}
	return false
}

// newElement begins another table of a list of tables.
func (r *reader) newElement(list place, at position) place {
	path := fmt.Sprintf("%s[%d]", list.path, r.file.elements[list.path])
	r.file.elements[list.path]++
	r.begin(path, at)
	return place{node: list.node.element, path: path, table: path, list: list.path}
}

// descend moves one name down, into a table or to a key. On an error it reports the
// fault and returns an empty place.
func (r *reader) descend(from place, name string, at position, header bool) place {
	here := from
	if here.node.children[name] == nil && here.node.element != nil {
		last := r.file.elements[here.path] - 1
		if last < 0 {
			r.fault(at, "%s is a list of tables: write [[%s]]", here.path, here.path)
			return place{}
		}
		path := fmt.Sprintf("%s[%d]", here.path, last)
		here = place{node: here.node.element, path: path, table: path, list: here.path}
	}
	child := here.node.children[name]
	if child == nil {
		child = here.node.any
	}
	if child == nil {
		r.unknown(here, name, at, header)
		return place{}
	}
	if name == "" {
		r.fault(at, "a name in [%s] is empty", here.path)
		return place{}
	}
	here.node = child
	if here.path != "" {
		here.path += "."
	}
	here.path += quotedName(name)
	if child.key == nil {
		r.begin(here.path, at)
		if here.list == "" {
			here.table = here.path
		}
	}
	return here
}

// unknown reports an unknown name.
func (r *reader) unknown(in place, name string, at position, header bool) {
	if in.node.key != nil {
		r.fault(at, "%s is not a table but %v", in.path, in.node.key.kind)
		return
	}
	what, where := "key", ""
	if header {
		what = "table"
	}
	if in.path != "" {
		where = " in [" + in.path + "]"
	}
	names := in.node.names()
	tables := tablesWith(name)
	switch meant := nearest.Of(name, names); {
	case meant != "":
		r.fault(at, "unknown %s %q%s; did you mean %q?", what, name, where, meant)
	case len(tables) == 1 && !header:
		r.fault(at, "unknown %s %q%s; it belongs in [%s]", what, name, where, tables[0])
	default:
		r.fault(at, "unknown %s %q%s; known are %s", what, name, where, strings.Join(names, ", "))
	}
}

// keyValue reads one "key = value" in a table.
func (r *reader) keyValue(table place, expression *unstable.Node) {
	here := table
	var at position
	parts := expression.Key()
	for parts.Next() {
		if here.node == nil {
			return
		}
		part := parts.Node()
		at = r.at(part, at)
		here = r.descend(here, string(part.Data), at, false)
	}
	if here.node != nil {
		r.value(here, expression.Value(), at)
	}
}

// value reads the value at a place: of a key, or of a table written in one line.
func (r *reader) value(here place, node *unstable.Node, at position) {
	switch {
	case here.node.key != nil:
		r.setting(here, node, at)
	case here.node.element != nil && node.Kind == unstable.Array:
		if r.file.elements[here.path] > 0 {
			r.fault(at, "%s is already set", here.path)
			return
		}
		r.file.elements[here.path] = 0 // an empty list is not the same as none
		items := node.Children()
		for items.Next() {
			item := items.Node()
			if item.Kind != unstable.InlineTable {
				r.fault(r.at(item, at), "%s is a list of tables, and this is none", here.path)
				continue
			}
			r.inlineTable(r.newElement(here, r.at(item, at)), item)
		}
	case here.node.element != nil:
		r.fault(r.at(node, at), "%s is a list of tables: write [[%s]]", here.path, here.path)
	case node.Kind == unstable.InlineTable:
		r.inlineTable(here, node)
	default:
		r.fault(r.at(node, at), "%s is a table: write [%s]", here.path, here.path)
	}
}

func (r *reader) inlineTable(here place, node *unstable.Node) {
	children := node.Children()
	for children.Next() {
		r.keyValue(here, children.Node())
	}
}

// setting reads the value of a key.
func (r *reader) setting(here place, node *unstable.Node, at position) {
	if earlier, ok := r.file.settings[here.path]; ok {
		r.fault(at, "%s is already set in line %d", here.path, earlier.at.line)
		return
	}
	valueAt := r.at(node, at)
	value, template, err := r.convert(here.node.key.kind, node)
	if err == nil {
		err = checkValue(here.node.key, value)
	}
	if err != nil {
		r.fault(r.within(err, node, valueAt), "%s: %v", here.path, err)
	}
	// A faulty setting is set, too, so as not to be reported as missing.
	r.file.settings[here.path] = setting{
		key: here.node.key, path: here.path, table: here.table, list: here.list, value: value, template: template, at: at,
	}
}

// quotedName formats a name for use in a path.
func quotedName(name string) string {
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r) {
			return quoted(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// required reports the missing keys of a table.
func (r *reader) required(table string, names ...string) {
	for _, name := range names {
		if !r.file.set(table + "." + name) {
			r.fault(r.file.tables[table], "%s needs %s", table, name)
		}
	}
}

// unique reports two tables of a list with the same name.
func (r *reader) unique(list string) {
	seen := map[string]setting{}
	for i := range r.file.elements[list] {
		name := r.file.lookup(fmt.Sprintf("%s[%d].name", list, i))
		text, _ := name.value.(string)
		if earlier, ok := seen[text]; ok && text != "" {
			r.fault(name.at, "the name %q is already used in line %d", text, earlier.at.line)
			continue
		}
		seen[text] = name
	}
}

// within is the place of an error in a value of the file: within the text of a condition
// if the file contains the text literally.
func (r *reader) within(err error, node *unstable.Node, valueAt position) position {
	var fault *alerting.ConditionError
	text := string(node.Data)
	if !errors.As(err, &fault) || node.Raw.Length == 0 {
		return valueAt
	}
	raw := r.lines.data[node.Raw.Offset : node.Raw.Offset+node.Raw.Length]
	begin := bytes.Index(raw, []byte(text))
	if begin < 0 {
		return valueAt // it has escapes, or refers to the environment
	}
	return r.lines.position(int(node.Raw.Offset) + begin + fault.Offset)
}
