package lease

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// maxRequester is how many characters the tables keep of a requester.
const maxRequester = 1024

// requester returns a requester shortened to the column's length, or nil for none.
func requester(by string) any {
	if by == "" {
		return nil
	}
	runes := []rune(by)
	return string(runes[:min(len(runes), maxRequester)])
}

func compareRoles(a, b string) int { return strings.Compare(a, b) }

// Release implements [tenure.Session]. One transaction ends the terms, releases the
// roles and announces the vacancies.
func (s *session) Release(releases []tenure.ReleaseRequest) error {
	if err := s.checkSendable(); err != nil {
		return err
	}
	ctx, cancel := s.withTimeout(s.options.Timing.RefreshInterval)
	defer cancel()

	// Roles with the same kind of end are released together.
	type end struct {
		reason     tenure.EndReason
		by         string
		target     uuid.UUID
		reserveFor time.Duration
	}
	var (
		ends   = map[end][]string{}
		unused []string // reserved for a term that has not begun
	)
	for _, r := range releases {
		if r.Term == 0 {
			unused = append(unused, r.Role.Name())
			continue
		}
		e := end{r.Reason, r.By, r.Target, r.Reservation}
		ends[e] = append(ends[e], r.Role.Name())
	}
	slices.Sort(unused)
	b := s.backend
	err := b.db.InTx(ctx, "release", func(ctx context.Context, on sqldb.Querier) error {
		for e, roles := range ends {
			slices.Sort(roles)
			var target any
			if e.target != uuid.Nil {
				target = e.target.String()
			}
			err := s.inLists(ctx, on, b.sql(releaseQuery), roles, string(e.reason), requester(e.by), target, e.reserveFor.Microseconds(), s.incarnation)
			if err != nil {
				return err
			}
		}
		if err := s.inLists(ctx, on, b.sql(releaseUnusedQuery), unused, s.incarnation); err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, b.sql(announceVacancyQuery))
	})
	if err == nil {
		for _, r := range releases {
			delete(s.lastTerms, r.Role.Name())
		}
	}
	return s.callError(err)
}
