package diagnosis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/doctor"
)

// synchronousStandbys is the meaning of synchronous_standby_names: a commit waits for
// some of the standbys.
type synchronousStandbys struct {
	needed int
	names  []string // "*" matches every standby
}

// parseStandbys reads a value of synchronous_standby_names accepted by a server.
func parseStandbys(setting string) synchronousStandbys {
	tokens := standbyTokens(setting)
	needed := 1
	if open := 1; len(tokens) > 1 {
		if word := strings.ToLower(tokens[0]); word == "any" || word == "first" {
			open = 2
		}
		if len(tokens) > open && tokens[open] == "(" {
			needed, _ = strconv.Atoi(tokens[open-1]) // the server has accepted it
			tokens = tokens[open+1 : len(tokens)-1]
		}
	}
	s := synchronousStandbys{needed: needed}
	for _, token := range tokens {
		if token != "," {
			s.names = append(s.names, unquoteStandby(token))
		}
	}
	return s
}

// standbyTokens splits a value into names, numbers, parentheses and commas. Names keep
// their quotes.
func standbyTokens(setting string) (tokens []string) {
	for rest := strings.TrimLeft(setting, standbySpace); rest != ""; rest = strings.TrimLeft(rest, standbySpace) {
		end := 1
		switch {
		case rest[0] == '"':
			for end < len(rest) && (rest[end] != '"' || strings.HasPrefix(rest[end:], `""`)) {
				if rest[end] == '"' {
					end++
				}
				end++
			}
			end = min(end+1, len(rest))
		case !strings.ContainsRune("(),", rune(rest[0])):
			if end = strings.IndexAny(rest, "(),\""+standbySpace); end < 0 {
				end = len(rest)
			}
		}
		tokens, rest = append(tokens, rest[:end]), rest[end:]
	}
	return tokens
}

const standbySpace = " \t\n\r\f\v"

func unquoteStandby(name string) string {
	if inner, quoted := strings.CutPrefix(name, `"`); quoted {
		return strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
	}
	return name
}

// acknowledgesAfterPromotion returns why the old primary can acknowledge commits after
// one of its standbys was promoted; "" if it cannot. If commits wait for all standbys,
// each commit has reached each standby, and needs each one.
func (s synchronousStandbys) acknowledgesAfterPromotion(sameName string) string {
	for _, name := range s.names {
		if name == "*" {
			return "every standby counts, so another one acknowledges the old primary's commits after one was promoted"
		}
	}
	switch {
	case len(s.names) == 0:
		return "no commit waits for a standby, so a promoted one may lack commits, and the old primary acknowledges its own"
	case s.needed < len(s.names):
		return fmt.Sprintf("a commit waits for %d of %d standbys, so the others acknowledge the old primary's commits after one was promoted", s.needed, len(s.names))
	case sameName != "":
		return fmt.Sprintf("several standbys are named %s, so another one acknowledges the old primary's commits after one was promoted", sameName)
	}
	return ""
}

// A user who may not read the settings of other users' standbys sees no names.
const readStandbys = `
SELECT
    (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
    coalesce((
        SELECT lower(application_name) FROM pg_stat_replication GROUP BY 1
        HAVING count(*) > 1 AND lower(application_name) = ANY ($1::text[]) LIMIT 1
    ), '')`

const standbyAdvice = `let every commit wait for all standbys, as in synchronous_standby_names = 'ANY 2 (a, b)', ` +
	`or do not declare a synchronous failover and set the failover wait`

// CheckSynchronousFailover is the method of the backend with this name.
func (e *Examiner) CheckSynchronousFailover(ctx context.Context) doctor.Finding {
	finding := doctor.Finding{Name: "synchronous failover"}
	err := e.Reader.Ask(ctx, "examine the synchronous standbys", func(ctx context.Context, conn *pgx.Conn) error {
		reason, commits, err := readAcknowledgment(ctx, conn)
		switch {
		case err != nil:
			return err
		case reason != "":
			finding.Severity, finding.Detail, finding.Advice = doctor.Warning, reason+": two nodes can lead", standbyAdvice
		case commits == "off" || commits == "local":
			finding.Severity = doctor.Warning
			finding.Detail = fmt.Sprintf("synchronous_commit is %s for this user: nodes override it, but a failover can lose other acknowledged writes", commits)
			finding.Advice = "set synchronous_commit to on for the users of fenced transactions"
		default:
			finding.Detail = "every commit waits for all synchronous standbys; elections stop while one of them hangs"
		}
		return nil
	})
	if err != nil {
		return doctor.Finding{Name: finding.Name, Severity: doctor.Failure, Detail: err.Error()}
	}
	return finding
}

// readAcknowledgment returns why the old primary can acknowledge commits after a
// promotion, and the default of synchronous_commit.
func readAcknowledgment(ctx context.Context, conn *pgx.Conn) (reason, commits string, err error) {
	var setting, sameName string
	if err := conn.QueryRow(ctx, "SELECT current_setting('synchronous_standby_names')").Scan(&setting); err != nil {
		return "", "", err
	}
	standbys := parseStandbys(setting)
	lower := make([]string, len(standbys.names))
	for i, name := range standbys.names {
		lower[i] = strings.ToLower(name)
	}
	err = conn.QueryRow(ctx, readStandbys, lower).Scan(&commits, &sameName)
	return standbys.acknowledgesAfterPromotion(sameName), commits, err
}
