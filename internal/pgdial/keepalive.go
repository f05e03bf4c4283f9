package pgdial

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// dial returns the dialer of the string. It has the driver's defaults until they are
// changed.
func (r *reading) dial() *net.Dialer {
	if r.dialer == nil {
		r.dialer = &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true}}
	}
	return r.dialer
}

func (r *reading) keepAlive(value string) error {
	if value == "0" {
		r.dial().KeepAlive, r.dial().KeepAliveConfig.Enable = -1, false
	}
	return nil
}

func (r *reading) keepAliveIdle(value string) error {
	number, err := ofSystem(value)
	r.dial().KeepAliveConfig.Idle = time.Duration(number) * time.Second
	return err
}

func (r *reading) keepAliveInterval(value string) error {
	number, err := ofSystem(value)
	r.dial().KeepAliveConfig.Interval = time.Duration(number) * time.Second
	return err
}

func (r *reading) keepAliveCount(value string) (err error) {
	r.dial().KeepAliveConfig.Count, err = ofSystem(value)
	return err
}

// ofSystem reads a number. 0 is the system's default, and -1 in package net.
func ofSystem(value string) (int, error) {
	number, err := numberOf(value)
	if number <= 0 {
		number = -1
	}
	return number, err
}

func (r *reading) userTimeout(value string) error {
	number, err := numberOf(value)
	switch {
	case err != nil:
		return err
	case number < 0:
		return errors.New("must not be negative")
	case number == 0:
		return nil
	}
	r.dial().Control = func(network, _ string, raw syscall.RawConn) error {
		if network == "unix" {
			return nil
		}
		var failed error
		err := raw.Control(func(socket uintptr) { failed = setUserTimeout(socket, number) })
		return errors.Join(err, failed)
	}
	return nil
}
