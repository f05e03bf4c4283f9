package main

import (
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
