package store

import (
	"cmp"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/timespan"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// DefaultPrefix is the default of [Config].Prefix.
const DefaultPrefix = "tenure_"

const (
	defaultWindow    = time.Minute
	defaultNamespace = "default"
	// maxNamespace is the length limit of a namespace, in characters.
	maxNamespace = 255
)

// Config configures a [Store]. The zero value is ready to use.
type Config struct {
	// Window is how long a candidate is eligible after its last call, and how long
	// a leader keeps its lease without renewing it. Default: 60 s; at least 1 ms.
	// Call Elect well within the window, usually three times.
	Window time.Duration
	// Schema is the schema of the tables, on PostgreSQL only. It must exist. The search
	// path of the connections does not matter. Default: "public".
	Schema string
	// Prefix begins the names of the tables election_candidate and election_leader. It has
	// at most 40 lower-case letters, digits and underscores. Default: [DefaultPrefix].
	// With the prefix of another library with tables of the same columns, both elect in
	// the same namespaces; see [Store.Migrate].
	Prefix string
	// Logger logs migrations, and leaders that other programs elected.
	// Default: slog.Default().
	Logger *slog.Logger
}

// validPrefix matches prefixes without need for quotes, and short enough for the names of
// the tables in every database.
var validPrefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

func (c Config) withDefaults(dialect sqldb.Dialect) Config {
	if c.Schema == "" {
		c.Schema = dialect.DefaultSchema()
	}
	c.Window = cmp.Or(c.Window, defaultWindow)
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate(dialect sqldb.Dialect) error {
	if c.Window < time.Millisecond || c.Window > timespan.Longest {
		return fmt.Errorf("%w: the window is %v; it must be at least 1ms and at most %v", tenure.ErrInvalidConfig, c.Window, timespan.Longest)
	}
	if !validPrefix.MatchString(c.Prefix) {
		return fmt.Errorf("%w: the prefix %q must be at most 40 lower-case letters, digits and underscores, and not begin with a digit",
			tenure.ErrInvalidConfig, c.Prefix)
	}
	return dialect.CheckSchema(c.Schema)
}

// checkCandidate returns the name of the namespace, or an error if the namespace or
// the candidate is invalid.
func checkCandidate(namespace string, candidate uuid.UUID) (string, error) {
	if candidate == uuid.Nil {
		return "", fmt.Errorf("%w: the candidate's id is the nil UUID: give each process its own id", tenure.ErrInvalidConfig)
	}
	return checkNamespace(namespace)
}

func checkNamespace(namespace string) (string, error) {
	invalid := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%w: the namespace %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	if namespace == "" {
		return defaultNamespace, nil
	}
	if !utf8.ValidString(namespace) {
		return invalid("is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(namespace); n > maxNamespace {
		return invalid("has %d characters; it must have at most %d", n, maxNamespace)
	}
	if i := strings.IndexFunc(namespace, unicode.IsControl); i >= 0 {
		return invalid("%q contains a control character", namespace)
	}
	return namespace, nil
}

// ForeignRowError reports an id in a table other than a UUID in the usual form: another
// program wrote it. The store does not change such a row.
type ForeignRowError struct {
	Namespace string
	ID        string
}

func (e *ForeignRowError) Error() string {
	return fmt.Sprintf("the namespace %q has an id that is no UUID, %q: remove the row, or choose another prefix", e.Namespace, e.ID)
}

// Unwrap makes the error match tenure.ErrLock.
func (e *ForeignRowError) Unwrap() error { return tenure.ErrLock }

// parseID parses an id and accepts only this package's form, because the statements
// compare ids as text.
func parseID(namespace, text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text || id == uuid.Nil {
		return uuid.Nil, &ForeignRowError{Namespace: namespace, ID: text}
	}
	return id, nil
}

// checkShared returns an error if the database treats one of the namespaces as equal to
// another one and found its row.
func checkShared(namespaces []string, found map[string]leaderRow) error {
	asked := make(map[string]struct{}, len(namespaces))
	for _, namespace := range namespaces {
		asked[namespace] = struct{}{}
	}
	for stored := range found {
		if _, ok := asked[stored]; !ok {
			return errSharedNamespace(namespaces[0], stored)
		}
	}
	return nil
}

func errSharedNamespace(asked, stored string) error {
	return fmt.Errorf("%w: to this table the namespace %q, or another one of the same call, is the same as %q: spell it in the same way",
		tenure.ErrInvalidConfig, asked, stored)
}
