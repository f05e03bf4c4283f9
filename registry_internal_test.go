package tenure

import "testing"

// The session may be given up between the choice of a question and its answer:
// then the question was refused and is gone.
func TestNoQuestionIsLeft(t *testing.T) {
	t.Parallel()
	s := newSession(&Node{cfg: Config{}.withDefaults(), clock: SystemClock()})
	if err := s.runCall(); err != nil {
		t.Error(err)
	}
}
