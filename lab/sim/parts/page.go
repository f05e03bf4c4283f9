package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

// sentence states the result of a run, with its command.
func (s state) sentence() string {
	violations := "no invariant was violated"
	if n := len(s.Violations); n > 0 {
		violations = fmt.Sprintf("%d of them violated an invariant", n)
	}
	from := ""
	if s.FirstSeed != 1 {
		from = fmt.Sprintf(" SEED=%d", s.FirstSeed)
	}
	versions := ""
	if s.Versions > 1 {
		versions = fmt.Sprintf("%d versions of the code, the last of ", s.Versions)
	}
	return fmt.Sprintf("%s simulated schedules with %s terms: %s (%s%s, %v of processor time; `make sim N=%d%s`).",
		thousands(s.Schedules), thousands(uint64(s.Terms)), violations,
		versions, s.Updated.Format("2006-01-02"), s.Processor.Round(time.Second), s.Schedules, from)
}

// thousands writes a number as documents do: 1,000,000.
func thousands(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// writePage replaces the sentence of a page.
func (s state) writePage(page string) error {
	return docpage.Update(page, "sim", func(string) string { return s.sentence() })
}
