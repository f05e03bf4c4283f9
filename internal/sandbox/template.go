package sandbox

import (
	"context"
	"path/filepath"
	"sync"
)

// template is a data directory that new servers start from: a copy takes a
// tenth of the time that making one does.
type template struct {
	once sync.Once
	path string
	err  error
}

// CopyTemplate copies the data directory of a name to a new path. The first who
// asks for the name has it made at the path that initialize is given.
func (s *Sandbox) CopyTemplate(ctx context.Context, name, target string, initialize func(path string) error) error {
	s.mu.Lock()
	shared, ok := s.templates[name]
	if !ok {
		shared = &template{}
		s.templates[name] = shared
	}
	s.mu.Unlock()
	shared.once.Do(func() {
		directory, err := s.Place()
		if err != nil {
			shared.err = err
			return
		}
		shared.path = filepath.Join(directory, "template")
		shared.err = initialize(shared.path)
	})
	if shared.err != nil {
		return shared.err
	}
	return s.Execute(ctx, "/bin/cp", "-a", shared.path, target)
}
