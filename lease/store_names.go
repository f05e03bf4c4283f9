package lease

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

const (
	defaultWindow      = time.Minute
	defaultStorePrefix = "gemstone_"
	defaultNamespace   = "default"
	// maxNamespace is the longest namespace, in characters.
	maxNamespace = 255
)

// storePrefix leaves room for the names of the tables in every database, and
// needs no quotes in any.
var storePrefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

func (c StoreConfig) withDefaults() StoreConfig {
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.Prefix == "" {
		c.Prefix = defaultStorePrefix
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c StoreConfig) validate() error {
	if c.Window < time.Millisecond {
		return fmt.Errorf("%w: the window is %v; the least is 1ms", tenure.ErrInvalidConfig, c.Window)
	}
	if !storePrefix.MatchString(c.Prefix) {
		return fmt.Errorf("%w: the prefix %q cannot begin a table's name: at most 40 lower-case letters, digits and underscores, no digit first",
			tenure.ErrInvalidConfig, c.Prefix)
	}
	return nil
}

// checked returns the namespace that is meant, or says what is wrong with it or
// with the candidate.
func checked(namespace string, candidate uuid.UUID) (string, error) {
	if candidate == uuid.Nil {
		return "", fmt.Errorf("%w: the candidate's id is the nil UUID: give every process one of its own", tenure.ErrInvalidConfig)
	}
	return checkedNamespace(namespace)
}

func checkedNamespace(namespace string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%w: the namespace %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	if namespace == "" {
		return defaultNamespace, nil
	}
	if !utf8.ValidString(namespace) {
		return bad("is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(namespace); n > maxNamespace {
		return bad("has %d characters; at most %d are allowed", n, maxNamespace)
	}
	if i := strings.IndexFunc(namespace, unicode.IsControl); i >= 0 {
		return bad("%q contains a control character", namespace)
	}
	return namespace, nil
}

// ForeignRowError tells that a table holds an id that is no UUID in the usual
// form: another program's. Nothing is done to such a row.
type ForeignRowError struct {
	Namespace string
	ID        string
}

func (e *ForeignRowError) Error() string {
	return fmt.Sprintf("the namespace %q has an id that is no UUID, %q: remove the row, or choose another prefix", e.Namespace, e.ID)
}

// Unwrap makes the error match tenure.ErrLock.
func (e *ForeignRowError) Unwrap() error { return tenure.ErrLock }

// parseID reads an id as this package writes it: statements compare the text.
func parseID(namespace, text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text || id == uuid.Nil {
		return uuid.Nil, &ForeignRowError{Namespace: namespace, ID: text}
	}
	return id, nil
}

// sharing is the error that a namespace would share the row of another, as the
// database compares them.
func sharing(namespaces []string, found map[string]holding) error {
	asked := make(map[string]struct{}, len(namespaces))
	for _, namespace := range namespaces {
		asked[namespace] = struct{}{}
	}
	for stored := range found {
		if _, ok := asked[stored]; !ok {
			return sharedNamespace(namespaces[0], stored)
		}
	}
	return nil
}

func sharedNamespace(asked, stored string) error {
	return fmt.Errorf("%w: this table takes the namespace %q, or one asked for together with it, for %q: write it the same way",
		tenure.ErrInvalidConfig, asked, stored)
}
