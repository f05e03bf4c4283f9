package config

import (
	"slices"
	"strings"
)

// schema is a node of the tree of keys: a key, a table, or a list of tables.
type schema struct {
	key      *key               // of a key
	children map[string]*schema // of a table, by name
	any      *schema            // of a table with names of the user's choice
	element  *schema            // of a list of tables: one of them
}

// root is the tree of all keys.
var root = func() *schema {
	top := &schema{}
	for i := range keys {
		node := top
		for _, part := range strings.Split(keys[i].path, ".") {
			node = node.grow(part)
		}
		node.key = &keys[i]
	}
	return top
}()

// grow returns the child for one part of a key's path, made if it is missing.
func (s *schema) grow(part string) *schema {
	if part == "*" {
		if s.any == nil {
			s.any = &schema{}
		}
		return s.any
	}
	name, list := strings.CutSuffix(part, "[]")
	if s.children == nil {
		s.children = map[string]*schema{}
	}
	if s.children[name] == nil {
		s.children[name] = &schema{}
	}
	child := s.children[name]
	if !list {
		return child
	}
	if child.element == nil {
		child.element = &schema{}
	}
	return child.element
}

// names returns the allowed names of a table.
func (s *schema) names() []string {
	var names []string
	for name := range s.children {
		names = append(names, name)
	}
	if s.element != nil {
		names = append(names, s.element.names()...)
	}
	slices.Sort(names)
	return names
}

// tablesWith are the tables with a key of this name.
func tablesWith(name string) []string {
	var tables []string
	for i := range keys {
		if strings.HasSuffix(keys[i].path, "."+name) {
			table := keys[i].table()
			if !slices.Contains(tables, table) {
				tables = append(tables, table)
			}
		}
	}
	return tables
}
