package service

import (
	"testing"
	"time"
)

func TestMeasuredLoadFollowsTheProcess(t *testing.T) {
	t.Parallel()
	load, err := measuredLoad()
	if err != nil {
		t.Fatal(err)
	}
	load() // processor time counts from here
	for deadline := time.Now().Add(20 * time.Second); ; {
		for i, sum := 0, 0; i < 1e7; i++ {
			sum += i * sum
		}
		switch got := load(); {
		case got.CPU > 100 || got.Memory <= 0 || got.Memory > 100:
			t.Fatalf("the load is %+v, want percentages", got)
		case got.CPU > 0:
			return
		case time.Now().After(deadline):
			t.Fatal("a busy process has no load")
		}
	}
}
