package sim

import (
	"fmt"
	"time"
)

// faultCommands are the commands of a script that break something.
var faultCommands = []command{
	{"crash NODE", on(func(_ *Script, m *Machine) { m.process.crash(false) })},
	{"vanish NODE", on(func(_ *Script, m *Machine) { m.process.crash(true) })},
	{"pause NODE", on(func(_ *Script, m *Machine) { m.process.pause() })},
	{"suspend NODE", on(func(_ *Script, m *Machine) {
		m.process.pause()
		m.clock.suspend(false)
	})},
	{"freeze NODE", on(func(s *Script, m *Machine) {
		s.world.replay.stop()
		s.world.checker.clocksStop = true // from now on, only fencing and term numbers protect
		m.process.pause()
		m.clock.suspend(true)
	})},
	{"resume NODE", on(func(_ *Script, m *Machine) { m.process.resume() })},
	{"isolate NODE", on(func(_ *Script, m *Machine) { cut(m.paths()...) })},
	{"cut-session NODE", on(func(_ *Script, m *Machine) { cut(m.sessionUp, m.sessionDown) })},
	{"cut-answers NODE", on(func(_ *Script, m *Machine) { cut(m.sessionDown) })},
	{"cut-watch NODE", on(func(_ *Script, m *Machine) { cut(m.watchUp, m.watchDown) })},
	{"heal NODE", on(func(_ *Script, m *Machine) {
		for _, p := range m.paths() {
			p.heal()
		}
	})},
	{"kill-session NODE", on(func(s *Script, m *Machine) {
		if b := s.world.server.backendOf(m); b != nil {
			b.kill()
		}
	})},
	{"stick NODE", on(func(s *Script, m *Machine) {
		if b := s.world.server.backendOf(m); b != nil {
			b.setStuck(true)
		}
	})},
	{"lock-row NODE", on(func(s *Script, m *Machine) {
		if b := s.world.server.backendOf(m); b != nil {
			b.rowBlock = true
		}
	})},
	{"set-clock NODE DURATION", func(s *Script, words []string) error {
		m, err := s.machine(words, 0)
		if err != nil {
			return err
		}
		if len(words) != 2 {
			return fmt.Errorf("a duration is missing")
		}
		step, err := time.ParseDuration(words[1])
		m.clock.step(0, step)
		return err
	}},
	{"lose-notifications", func(s *Script, _ []string) error {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.world.network.Loss = 1
		return nil
	}},
	{"stop-server", func(s *Script, _ []string) error {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.world.server.crash(false)
		return nil
	}},
	{"start-server", func(s *Script, _ []string) error {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.world.server.startIfDown()
		return nil
	}},
	{"replicate", func(s *Script, _ []string) error {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.replica = s.world.server.replicate()
		return nil
	}},
	{"fail-over", func(s *Script, _ []string) error {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.world.server.crash(false)
		s.world.server.promote(s.replica)
		return nil
	}},
	{"fail-back", func(s *Script, _ []string) error {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		if s.world.server.former == nil {
			return fmt.Errorf("no server was replaced")
		}
		s.world.server.crash(false)
		s.world.server.restart()
		return nil
	}},
	{"make-anew", func(s *Script, _ []string) error {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.world.server.recreate()
		return nil
	}},
}

func cut(paths ...*path) {
	for _, p := range paths {
		p.block()
	}
}
