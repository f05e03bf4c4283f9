package assign

import "time"

// Status says whether the passes of an assigner over its table succeed on this node.
type Status struct {
	Leading  bool      // this node assigns rows
	LastPass time.Time // when the last pass that succeeded ended; zero if there is none
	Err      error     // the error of the last pass; nil if it succeeded
	Since    time.Time // when the passes began to fail; zero if Err is nil
}

// Status returns whether the passes succeed. A health check or a metric of yours can use it: rows
// wait while Leading is true and Err is not nil.
func (a *Assigner) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// leads records whether this node assigns rows.
func (a *Assigner) leads(so bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Leading = so
	if !so {
		a.status.Err, a.status.Since = nil, time.Time{}
	}
}

// passed records the end of a pass.
func (a *Assigner) passed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		a.status.LastPass, a.status.Since = now, time.Time{}
	case a.status.Err == nil:
		a.status.Since = now
	}
	a.status.Err = err
}
