package config

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Load reads a file; env supplies the variables in its values. If a file cannot be read
// or has errors, Load returns one error with all of them, each on its line and each an
// [*Error]. A file with a secret must not be open to other users.
func Load(path string, env Environment) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	parsed, err := Parse(path, data, env)
	if err != nil {
		return nil, err
	}
	if fault := parsed.exposed(file); fault != nil {
		return nil, fault
	}
	return parsed, nil
}

func unreadable(path string, err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err // the path is in the message already
	}
	return &Error{File: path, Message: fmt.Sprintf("the file cannot be read: %v", err)}
}

// Parse is [Load] for the content of a file. Errors call the file by name.
func Parse(name string, data []byte, env Environment) (*File, error) {
	data, fault := decoded(name, data)
	if fault != nil {
		return nil, fault
	}
	file := &File{name: name, settings: map[string]setting{}, tables: map[string]position{}, elements: map[string]int{}}
	r := &reader{env: env, lines: newLines(data), file: file}
	r.read()
	if r.clean() {
		r.checkRelations()
	}
	if err := joined(r.faults); err != nil {
		return nil, err
	}
	return file, nil
}
