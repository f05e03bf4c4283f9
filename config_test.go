package tenure

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestZeroConfigGetsDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	want := Timing{
		Lease: 10 * time.Second, RefreshInterval: 10 * time.Second / 3, Margin: time.Second,
		CheckInterval: 5 * time.Second, LockTimeout: 10 * time.Second, FenceTimeout: 5 * time.Second,
	}
	if got := c.timing(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if c.StopTimeout != 10*time.Second {
		t.Errorf("the stop timeout is %v", c.StopTimeout)
	}
	if c.Name == "" || c.Logger == nil || c.Clock == nil {
		t.Errorf("unset: %+v", c)
	}
	if err := c.validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestConfigDefaultsFollowLease(t *testing.T) {
	t.Parallel()
	c := Config{Lease: 3 * time.Second}.withDefaults()
	if c.RefreshInterval != time.Second || c.Margin != 300*time.Millisecond {
		t.Errorf("refresh %v, margin %v", c.RefreshInterval, c.Margin)
	}
	c = Config{Lease: 3 * time.Second, RefreshInterval: time.Second / 2, Margin: time.Second / 4}.withDefaults()
	if c.RefreshInterval != time.Second/2 || c.Margin != time.Second/4 {
		t.Errorf("set values were replaced: refresh %v, margin %v", c.RefreshInterval, c.Margin)
	}
}

func TestFenceTimeoutAndLockTimeoutDefaultsFollowEachOther(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ config, want Config }{
		{Config{LockTimeout: time.Second}, Config{LockTimeout: time.Second, FenceTimeout: time.Second / 2}},
		{Config{LockTimeout: time.Minute}, Config{LockTimeout: time.Minute, FenceTimeout: 5 * time.Second}},
		{Config{LockTimeout: time.Millisecond}, Config{LockTimeout: time.Millisecond, FenceTimeout: time.Millisecond}},
		{Config{FenceTimeout: time.Second}, Config{LockTimeout: 10 * time.Second, FenceTimeout: time.Second}},
		{Config{FenceTimeout: 20 * time.Second}, Config{LockTimeout: 40 * time.Second, FenceTimeout: 20 * time.Second}},
		{Config{LockTimeout: time.Second, FenceTimeout: time.Second}, Config{LockTimeout: time.Second, FenceTimeout: time.Second}},
	} {
		got := test.config.withDefaults()
		if got.LockTimeout != test.want.LockTimeout || got.FenceTimeout != test.want.FenceTimeout {
			t.Errorf("%v and %v became %v and %v", test.config.LockTimeout, test.config.FenceTimeout, got.LockTimeout, got.FenceTimeout)
		}
		if err := got.validate(); err != nil {
			t.Errorf("%v and %v are refused: %v", test.config.LockTimeout, test.config.FenceTimeout, err)
		}
	}
}

func TestConfigRejectsInvalidSettings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config Config
		want   string // part of the message; empty if the configuration is good
	}{
		"shortest lease":             {Config{Lease: 100 * time.Millisecond}, ""},
		"lease too short":            {Config{Lease: 99 * time.Millisecond}, "the lease is 99ms; it must be at least 100ms"},
		"longest lease":              {Config{Lease: 24 * time.Hour}, ""},
		"lease too long":             {Config{Lease: 25 * time.Hour}, "it must be at most 24h"},
		"negative lease":             {Config{Lease: -time.Second}, "the lease is -1s"},
		"refresh and margin fit":     {Config{RefreshInterval: 8 * time.Second, Margin: 2*time.Second - 1}, ""},
		"refresh and margin too big": {Config{RefreshInterval: 8 * time.Second, Margin: 2 * time.Second}, "must be longer than"},
		"negative refresh":           {Config{RefreshInterval: -1}, "the refresh interval"},
		"negative margin":            {Config{Margin: -1}, "the margin"},
		"check interval too short":   {Config{CheckInterval: 1}, "the check interval"},
		"lock timeout too short":     {Config{LockTimeout: 1}, "the lock timeout"},
		"fence timeout too short":    {Config{FenceTimeout: 1}, "the fence timeout"},
		"lock below fence timeout": {
			Config{LockTimeout: time.Second, FenceTimeout: 1001 * time.Millisecond}, "the lock timeout is 1s and the fence timeout 1.001s",
		},
		"stop timeout too short": {Config{StopTimeout: 1}, "the stop timeout"},
		"negative settle":        {Config{Settle: -1}, "the settle"},
		"negative failover wait": {Config{FailoverWait: -1}, "the failover wait"},
		// Added to a moment, it would be in the past, and no term would wait.
		"longest failover wait":  {Config{FailoverWait: 87_600 * time.Hour}, ""},
		"failover wait too long": {Config{FailoverWait: math.MaxInt64}, "and at most 87600h"},
		"settle too long":        {Config{Settle: math.MaxInt64}, "the settle"},
		"refresh too long":       {Config{RefreshInterval: math.MaxInt64}, "the refresh interval"},
		"name with a line break": {Config{Name: "a\nb"}, "the node's name"},
		"name too long":          {Config{Name: strings.Repeat("n", 255+1)}, "the node's name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.config.withDefaults().validate()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (!errors.Is(err, ErrInvalidConfig) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
